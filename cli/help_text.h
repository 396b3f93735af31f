// What --help and --help-all print of a command.
#pragma once

#include <string>
#include <string_view>

#include "cli/command_line.h"

namespace paceline::cli {

// The command's meaning, how it is called, its options by groups in the order in which they were declared,
// and the commands below it. `path` is how it is called: "paceline show plan". Without `all`, options that
// are Option::is_expert are left out, and a line says how many. No line is wider than `width` but one
// whose single word is.
[[nodiscard]] std::string help_text(std::string_view path, const Command& command, int width,
                                    bool all);

}  // namespace paceline::cli

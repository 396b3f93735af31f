// Manual pages of the command, made from its own options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"

namespace paceline::cli {

struct ManualPage {
  std::string name;  // "paceline-show-network"
  std::string text;  // for man(1): roff with the macros of man(7), with a final newline
};

// A page for the program, and one for each command of it, the outer ones first.
[[nodiscard]] std::vector<ManualPage> manual_pages(const Command& program,
                                                   std::string_view version);

}  // namespace paceline::cli

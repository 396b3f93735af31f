// Keyword arguments of Python as the options of a command.
//
// The keywords are the command's own options: "scale_gradients" is --scale-gradients. So an option that
// a command gains is a keyword, too, with the same meaning, limits and messages.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.h"

namespace paceline::python {

// Texts of keywords; that of a flag is "True" or "False", as Python writes them.
using Keywords = std::vector<std::pair<std::string, std::string>>;

// "scale_gradients" of --scale-gradients.
[[nodiscard]] std::string keyword_of(const cli::Option& option);

// Writes the texts to where the command's options keep theirs. Throws InputError for a keyword that is
// no option of the command, for one with an empty text, and for a flag with another text.
void take_keywords(const cli::Command& command, const Keywords& keywords);

// The keywords that take_keywords() takes, flags among them.
[[nodiscard]] std::vector<std::string> keywords_of(const cli::Command& command);

}  // namespace paceline::python

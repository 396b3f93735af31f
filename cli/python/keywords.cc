// Tests: tests/python/test_options.py.
#include "cli/python/keywords.h"

#include <fmt/core.h>

#include <algorithm>

#include "models/base/error.h"
#include "models/base/names.h"

namespace paceline::python {

std::string keyword_of(const cli::Option& option) {
  std::string keyword = option.name.substr(option.name.starts_with("--") ? 2 : 0);
  std::replace(keyword.begin(), keyword.end(), '-', '_');
  return keyword;
}

void take_keywords(const cli::Command& command, const Keywords& keywords) {
  for (const auto& [keyword, text] : keywords) {
    const auto found = std::ranges::find(command.options(), keyword, keyword_of);
    if (found == command.options().end())
      throw unknown_name("argument", keyword, keywords_of(command));
    if (text.empty()) throw InputError({found->name}, "an empty text", "leave it out");
    if (!found->is_flag) {
      found->take(text);
      continue;
    }
    if (text != "True" && text != "False")
      throw InputError({found->name}, fmt::format("{} is neither true nor false", in_quotes(text)),
                       "give True or False");
    if (text == "True") found->take("");
  }
}

std::vector<std::string> keywords_of(const cli::Command& command) {
  std::vector<std::string> keywords;
  for (const cli::Option& option : command.options()) keywords.push_back(keyword_of(option));
  return keywords;
}

}  // namespace paceline::python

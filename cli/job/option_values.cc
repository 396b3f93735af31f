// Tests: tests/cli (end to end).
#include "cli/job/option_values.h"

#include <fmt/core.h>

#include "models/base/parse_units.h"

namespace paceline::job {

void require_option(const std::string& value, const char* option, const char* example) {
  if (value.empty())
    throw InputError(fmt::format("{} is missing", option),
                     fmt::format("give it, as in {} {}", option, example));
}

std::optional<int> optional_count(const char* option, const std::string& text, int most) {
  if (text.empty()) return std::nullopt;
  return static_cast<int>(parsing_option(option, [&] { return parse_count(text, 1, most); }));
}

std::string without_ending(std::string text, std::string_view ending) {
  if (text.ends_with(ending)) text.erase(text.size() - ending.size());
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

}  // namespace paceline::job

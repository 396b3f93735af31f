// Values of options as text, and what they mean: the parsers that every command shares.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/error.h"
#include "models/base/parse_units.h"

namespace paceline::job {

// Refuses an option that must be given and is not. `example` is a value of it. Throws InputError.
void require_option(const std::string& value, const char* option, const char* example);

// A whole number from 1 to `most`; nothing if there is no text. Throws InputError that names the
// option.
[[nodiscard]] std::optional<int> optional_count(const char* option, const std::string& text,
                                                int most);

using paceline::comma_list;

// The text without this ending and the blanks before it.
[[nodiscard]] std::string without_ending(std::string text, std::string_view ending);

// Runs `parse`; an InputError that it throws is said to come from `option`.
template <class F>
decltype(auto) parsing_option(const char* option, F parse) {
  try {
    return parse();
  } catch (const InputError& error) {
    throw error.at({option});
  }
}

}  // namespace paceline::job

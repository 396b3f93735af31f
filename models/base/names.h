// Names that users type: errors for unknown ones suggest the nearest known one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/error.h"

namespace paceline {

// The known name with the least edit distance (insert, delete, replace, swap of neighbours;
// case-blind), if that is at most a third of the longer name. Else the first known name that
// begins with `name`. Ties go to the first.
[[nodiscard]] std::optional<std::string> nearest_name(std::string_view name,
                                                      const std::vector<std::string>& known);

// The InputError "unknown network 'resnet5'; did you mean 'resnet50'?". It lists the known names
// where none is near. `kind` is the noun. For words of common_words.h it says what to do instead.
[[nodiscard]] InputError unknown_name(std::string_view kind, std::string_view name,
                                      const std::vector<std::string>& known);

// A table here is a range of pairs of a value and its name, as in
// constexpr std::array<std::pair<Library, std::string_view>, 2>.

// The value's name; "unknown" if the table has none.
template <class Table, class Value>
[[nodiscard]] std::string_view name_in(const Table& table, Value value) {
  for (const auto& [entry, name] : table) {
    if (entry == value) return name;
  }
  return "unknown";
}

// The value that has this name. Throws unknown_name() with the names of the table, in its order.
template <class Table>
[[nodiscard]] auto value_named(const Table& table, std::string_view kind, std::string_view name) {
  std::vector<std::string> known;
  for (const auto& [entry, candidate] : table) {
    if (candidate == name) return entry;
    known.emplace_back(candidate);
  }
  throw unknown_name(kind, name, known);
}

}  // namespace paceline

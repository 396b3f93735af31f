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
// where none is near. `kind` is the noun.
[[nodiscard]] InputError unknown_name(std::string_view kind, std::string_view name,
                                      const std::vector<std::string>& known);

}  // namespace paceline

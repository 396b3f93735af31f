// Where in a text a byte is, for errors.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "models/base/error.h"

namespace paceline {

// Line and column of text[offset], in bytes; of the end, where the text is shorter. O(offset).
[[nodiscard]] InputPlace place_in(const std::string& file, std::string_view text,
                                  std::size_t offset);

}  // namespace paceline

// The line and column of a byte in a text, for errors.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "models/base/error.h"

namespace paceline {

// Line and column of text[offset], in bytes, or of the end if the text is shorter. O(offset) time.
[[nodiscard]] InputPlace place_in(const std::string& file, std::string_view text,
                                  std::size_t offset);

}  // namespace paceline

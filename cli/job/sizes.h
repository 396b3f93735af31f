// Sizes of messages as an option lists them.
#pragma once

#include <string>
#include <vector>

#include "models/base/units.h"

namespace paceline::job {

inline constexpr Bytes largest_size{1e15};
inline constexpr int most_sizes = 1000;

// Bytes of one message. A number without a unit is of bytes. Throws InputError for less than 1 B and
// more than largest_size.
[[nodiscard]] Bytes parse_size(const std::string& text);

// Reads "1KiB,25MiB,8" or "8-1GiB": the first size, `factor` times as much each time as long as it
// is less than the last one, and the last one. Throws InputError as
// parse_size() does, for a range that goes down, and for more sizes than most_sizes.
[[nodiscard]] std::vector<Bytes> parse_sizes(const std::string& text, double factor);

}  // namespace paceline::job

// The level of an interval: the one number behind every "low to high" that Paceline prints of
// what was measured or calibrated. calibration/fit/statistics.h says what an interval is of, and
// how it comes from samples.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "models/base/error.h"

namespace paceline {

// An interval holds the true value with this probability.
inline constexpr double interval_level = 0.9;

// Standard deviations on either side of the mean that hold `interval_level` of a normal
// distribution: its 95 % quantile.
inline constexpr double normal_reach = 1.6448536269514722;

// The share of values that lie below an interval, and the share above it.
inline constexpr double interval_tail = (1 - interval_level) / 2;

// The value below which the share `share` (0 to 1) of the ascending values lies, by linear
// interpolation between order statistics (type 7 of hyndman). Needs at least one value.
[[nodiscard]] inline double quantile(std::span<const double> ascending, double share) {
  PACELINE_ASSERT(!ascending.empty(), "a quantile is of at least one value");
  const double at = share * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, ascending.size() - 1);
  return ascending[below] +
         (at - static_cast<double>(below)) * (ascending[above] - ascending[below]);
}

}  // namespace paceline

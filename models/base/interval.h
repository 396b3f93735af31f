// The level of an interval: the one number behind every "low to high" that Paceline prints of
// what was measured or calibrated. calibration/fit/statistics.h says what an interval is of, and
// how it comes from samples.
#pragma once

namespace paceline {

// An interval holds the true value with this probability.
inline constexpr double interval_level = 0.9;

// Standard deviations on either side of the mean that hold `interval_level` of a normal
// distribution: its 95 % quantile.
inline constexpr double normal_reach = 1.6448536269514722;

}  // namespace paceline

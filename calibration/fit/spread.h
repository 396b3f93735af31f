// How far samples of one size lie apart, as several runs of one benchmark do.
#pragma once

#include <span>
#include <vector>

#include "calibration/fit/piecewise.h"
#include "models/base/units.h"

namespace paceline::calibration {

struct SizeSpread {
  Bytes bytes;
  Seconds least;
  Seconds median;
  Seconds most;
  int samples = 1;

  // The longest time over the shortest, at least 1.
  [[nodiscard]] double ratio() const { return most / least; }
};

// In ascending order of the sizes. O(n log n).
[[nodiscard]] std::vector<SizeSpread> spread_by_size(std::span<const Sample> samples);

// The relative standard deviation of a sample from the median of its size: the root mean square of the
// logarithms of time / median, over all sizes with several samples. 0 where there are none. O(n log n).
[[nodiscard]] double relative_spread(std::span<const Sample> samples);

}  // namespace paceline::calibration

// How often a measurement is repeated: until its interval is narrow enough, or the time for it is over.
#pragma once

#include <chrono>
#include <functional>
#include <utility>
#include <vector>

#include "calibration/fit/statistics.h"
#include "models/base/to_size.h"
#include "models/base/units.h"

namespace paceline::calibration {

struct Repetition {
  int least = 5;         // samples; five are the least whose interval needs no stretch
  int most = 200;        // samples
  double narrow = 0.01;  // of the median: half of the interval's width at which samples suffice
  Seconds time{1};       // begins no sample after it, except for the least
};

// The samples of `once`, which gives one or several at a time, or none to end it. At least `least`,
// whatever the time; `most` may be exceeded by what one call gives. Half of an interval of `narrow` or
// less ends it.
[[nodiscard]] inline std::vector<double> repeat(const Repetition& how,
                                                const std::function<std::vector<double>()>& once) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<double> samples;
  for (;;) {
    const std::vector<double> more = once();
    if (more.empty()) return samples;
    samples.insert(samples.end(), more.begin(), more.end());
    if (samples.size() < to_size(how.least)) continue;
    const Interval interval = median_interval(samples);
    if (interval.high - interval.low <= 2 * how.narrow * median(samples)) return samples;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    if (samples.size() >= to_size(how.most) || passed.count() > how.time.value()) return samples;
  }
}

}  // namespace paceline::calibration

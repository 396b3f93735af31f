// How late frames were delivered: count, mean, worst and quantiles, in constant space.
//
// Quantiles come from a histogram whose buckets are a quarter of an octave wide: they are the upper
// end of their bucket, at most 25 % above the exact one, and never above the worst.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "experiments/lab/switch/fabric.h"

namespace paceline::lab {

class Lateness {
 public:
  // Counts a frame. A negative lateness counts as 0.
  void add(Nanoseconds late);
  [[nodiscard]] std::int64_t count() const { return count_; }
  // All are 0 before the first frame.
  [[nodiscard]] double mean() const;  // nanoseconds
  [[nodiscard]] Nanoseconds worst() const { return worst_; }
  // The lateness that `share` of the frames do not exceed, 0 < share <= 1.
  [[nodiscard]] Nanoseconds quantile(double share) const;

 private:
  std::int64_t count_ = 0;
  Nanoseconds sum_ = 0;
  Nanoseconds worst_ = 0;
  std::array<std::int64_t, std::size_t{64} * 4> buckets_{};
};

}  // namespace paceline::lab

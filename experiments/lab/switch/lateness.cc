#include "experiments/lab/switch/lateness.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "models/base/to_size.h"

namespace paceline::lab {
namespace {

// Buckets 0 to 3 hold one value each; above, the octave of a value and the two bits after its
// first.
std::size_t bucket_of(Nanoseconds late) {
  const auto value = static_cast<std::uint64_t>(late);
  if (value < 4) return value;
  const auto octave = to_size(std::bit_width(value)) - 1;
  return octave * 4 + ((value >> (octave - 2)) & 3);
}

// The largest value that a bucket holds.
Nanoseconds upper_end(std::size_t bucket) {
  if (bucket < 4) return static_cast<Nanoseconds>(bucket);
  const std::size_t octave = bucket / 4;
  const std::uint64_t first = (4 + bucket % 4) << (octave - 2);
  return static_cast<Nanoseconds>(first + (std::uint64_t{1} << (octave - 2)) - 1);
}

}  // namespace

void Lateness::add(Nanoseconds late) {
  late = std::max<Nanoseconds>(late, 0);
  ++count_;
  sum_ += late;
  worst_ = std::max(worst_, late);
  ++buckets_[bucket_of(late)];
}

double Lateness::mean() const {
  return count_ == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(count_);
}

Nanoseconds Lateness::quantile(double share) const {
  const auto wanted = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(count_)));
  std::int64_t seen = 0;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (seen >= wanted && seen > 0) return std::min(upper_end(bucket), worst_);
  }
  return worst_;
}

}  // namespace paceline::lab

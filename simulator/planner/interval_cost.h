// What a bucket of neighbouring gradients costs, from sums of their elements and a curve of times.
#pragma once

#include <cstdint>
#include <vector>

#include "models/network/work.h"
#include "simulator/planner/size_curve.h"
#include "simulator/planner/stream_clock.h"

namespace paceline::simulator {

// What a bucket takes of its stream beside its all-reduce (simulator/iteration/bucket_times.h), which
// is linear in its elements: to start it, and to cast, pack and unpack it. A bucket of one gradient is
// not packed.
struct BucketAside {
  double fixed_s = 0;
  double single_s_per_element = 0;
  double fused_s_per_element = 0;

  [[nodiscard]] double at(std::int64_t elements, int gradients) const {
    return fixed_s + static_cast<double>(elements) *
                         (gradients > 1 ? fused_s_per_element : single_s_per_element);
  }
};

// sums[i] is the number of elements of the first i gradients.
[[nodiscard]] inline std::vector<std::int64_t> element_sums(
    const std::vector<models::Gradient>& gradients) {
  std::vector<std::int64_t> sums = {0};
  sums.reserve(gradients.size() + 1);
  for (const models::Gradient& gradient : gradients)
    sums.push_back(sums.back() + gradient.elements);
  return sums;
}

// The cost of the bucket of gradients [first, end), for optimal_fusion.h. Keeps pointers to the sums
// and the curve. Use one for each thread: it remembers the piece that it looked at last.
class IntervalCost {
 public:
  IntervalCost(const std::vector<std::int64_t>& sums, double element_bytes, const SizeCurve& curve,
               const BucketAside& aside, bool slows, const TrafficLoad& load = {})
      : sums_(sums.data()),
        curve_(&curve),
        element_bytes_(element_bytes),
        aside_(aside),
        slows_(slows),
        load_(load) {}

  [[nodiscard]] BucketCost operator()(int first, int end) const {
    const std::int64_t elements = sums_[end] - sums_[first];
    const double bytes = static_cast<double>(elements) * element_bytes_;
    piece_ = curve_->find(bytes, piece_);
    const double time_s = (*curve_)[piece_].at(bytes);
    return {time_s + aside_.at(elements, end - first), slows_ ? load_.full_s(bytes, time_s) : 0};
  }
  // The piece's `which` for the bucket.
  [[nodiscard]] int which(int first, int end) const {
    piece_ = curve_->find(static_cast<double>(sums_[end] - sums_[first]) * element_bytes_, piece_);
    return (*curve_)[piece_].which;
  }

 private:
  const std::int64_t* sums_;
  const SizeCurve* curve_;
  double element_bytes_;
  BucketAside aside_;
  bool slows_;
  TrafficLoad load_;
  mutable std::size_t piece_ = 0;
};

}  // namespace paceline::simulator

// Tests: tests/simulator/sketch_test.cc.
#include "simulator/iteration/sketch.h"

#include <algorithm>
#include <numeric>

#include "models/base/error.h"
#include "simulator/planner/recurrence.h"

namespace paceline::simulator {

IterationSketch::IterationSketch(const models::NetworkWork& network, const models::Plan& plan,
                                 const ComputeTimes& compute)
    : overlap_(plan.overlap),
      computed_(compute.total() - compute.update),
      update_(compute.update),
      ready_(ready_times(network, plan, compute)) {}

Seconds IterationSketch::period(double compute_factor, std::span<const Seconds> buckets,
                                std::span<const Seconds> lost) const {
  PACELINE_ASSERT(buckets.size() == ready_.size() && lost.size() == ready_.size(),
                  "every bucket has its times");
  Seconds sent;     // when the communication stream is done with what it has
  Seconds delayed;  // what collectives have taken from computation
  for (std::size_t i = 0; i < ready_.size(); ++i) {
    sent = std::max(sent, compute_factor * ready_[i] + delayed) + buckets[i];
    delayed += lost[i];
  }
  const Seconds computed = compute_factor * computed_ + delayed;
  const Seconds update = compute_factor * update_;
  if (overlap_ == models::Overlap::double_buffered)
    return std::max(computed + update, std::accumulate(buckets.begin(), buckets.end(), Seconds{0}));
  return std::max(computed, sent) + update;
}

}  // namespace paceline::simulator

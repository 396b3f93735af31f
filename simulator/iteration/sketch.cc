// Tests: tests/simulator/sketch_test.cc.
#include "simulator/iteration/sketch.h"

#include <algorithm>
#include <numeric>

#include "models/base/error.h"
#include "simulator/planner/recurrence.h"

namespace paceline::simulator {

IterationSketch::IterationSketch(const models::NetworkWork& network, const models::Plan& plan,
                                 const ComputeTimes& compute)
    : overlap_(plan.overlap), update_(compute.update) {
  Seconds backward;
  for (const LayerTime& layer : compute.layers) {
    forward_ += layer.forward;
    backward += layer.backward;
  }
  Seconds done;  // of the backward pass
  for (const Seconds ready : ready_times(network, plan, compute)) {
    const Seconds at = ready - forward_;
    if (backward_.empty() || at > done) {
      backward_.push_back({at - done, 0});
      done = at;
    }
    ++backward_.back().buckets;
  }
  if (backward_.empty() || done < backward) backward_.push_back({backward - done, 0});
}

Seconds IterationSketch::period(double compute_factor, double beside,
                                std::span<const Seconds> buckets) const {
  PACELINE_ASSERT(beside >= 1, "a collective does not speed computation up");
  Seconds now = compute_factor * forward_;
  Seconds sent;  // when the communication stream is done with what it has
  auto bucket = buckets.begin();
  for (const Stretch& stretch : backward_) {
    const Seconds alone = compute_factor * stretch.time;
    const Seconds busy = std::max(Seconds{0}, sent - now);
    now += alone * beside <= busy ? alone * beside : busy + (alone - busy / beside);
    for (int i = 0; i < stretch.buckets; ++i) sent = std::max(sent, now) + *bucket++;
  }
  const Seconds update = compute_factor * update_;
  if (overlap_ == models::Overlap::double_buffered)
    return std::max(now + update, std::accumulate(buckets.begin(), buckets.end(), Seconds{0}));
  return std::max(now, sent) + update;
}

}  // namespace paceline::simulator

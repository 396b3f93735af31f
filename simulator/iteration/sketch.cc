// Tests: tests/simulator/sketch_test.cc.
#include "simulator/iteration/sketch.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "models/base/error.h"
#include "simulator/planner/recurrence.h"

namespace paceline::simulator {

IterationSketch::IterationSketch(const models::NetworkWork& network, const models::Plan& plan,
                                 const ComputeTimes& compute)
    : overlap_(plan.overlap),
      computed_(compute.total() - compute.update),
      update_(compute.update),
      ready_(ready_times(network, plan, compute)) {}

IterationSketch::IterationSketch(std::vector<PeriodAt> periods, Seconds computation,
                                 Seconds communication)
    : computed_(computation), curve_(std::move(periods)), communication_(communication) {
  PACELINE_ASSERT(curve_.size() >= 2, "a curve has two ends");
}

// Between two factors, and beyond the last, the period is a line.
Seconds IterationSketch::by_curve(double compute_factor, Seconds sent, Seconds lost) const {
  const double computing = compute_factor + lost / computed_;
  const double factor = communication_ > Seconds{0} ? sent / communication_ / computing : 0;
  auto end = std::upper_bound(curve_.begin() + 1, curve_.end() - 1, factor,
                              [](double value, const PeriodAt& at) { return value < at.factor; });
  const PeriodAt& from = *(end - 1);
  const Seconds rise = end->period - from.period;
  return computing * (from.period + (factor - from.factor) / (end->factor - from.factor) * rise);
}

Seconds IterationSketch::period(double compute_factor, std::span<const Seconds> buckets,
                                std::span<const Seconds> lost) const {
  if (!curve_.empty())
    return by_curve(compute_factor, std::accumulate(buckets.begin(), buckets.end(), Seconds{0}),
                    std::accumulate(lost.begin(), lost.end(), Seconds{0}));
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

// Tests: tests/simulator/planner_test.cc, tests/simulator/dag_test.cc.
#include "simulator/planner/recurrence.h"

#include <algorithm>

#include "models/base/error.h"

namespace paceline::simulator {

std::vector<Seconds> gradient_times(const models::NetworkWork& network,
                                    const ComputeTimes& compute) {
  Seconds now;
  for (const LayerTime& layer : compute.layers) now += layer.forward;
  std::vector<Seconds> done(compute.layers.size());
  for (std::size_t i = compute.layers.size(); i-- > 0;) {
    now += compute.layers[i].backward;
    done[i] = now;
  }
  std::vector<Seconds> times;
  times.reserve(network.gradients.size());
  for (const models::Gradient& gradient : network.gradients)
    times.push_back(done[static_cast<std::size_t>(gradient.layer)]);
  return times;
}

std::vector<Seconds> ready_times(const models::NetworkWork& network, const models::Plan& plan,
                                 const ComputeTimes& compute) {
  const std::vector<Seconds> gradients = gradient_times(network, compute);
  const Seconds end_of_backward = compute.total() - compute.update;
  std::vector<Seconds> ready;
  ready.reserve(plan.buckets.size());
  for (const models::Bucket& bucket : plan.buckets) {
    const auto last = static_cast<std::size_t>(bucket.first_gradient + bucket.gradient_count - 1);
    ready.push_back(plan.overlap == models::Overlap::none ? end_of_backward : gradients[last]);
  }
  return ready;
}

Seconds last_finish(std::span<const Seconds> ready, std::span<const Seconds> durations) {
  PACELINE_ASSERT(ready.size() == durations.size(), "every bucket has its time");
  Seconds finish;
  for (std::size_t i = 0; i < ready.size(); ++i) finish = std::max(ready[i], finish) + durations[i];
  return finish;
}

std::vector<int> priority_order(std::span<const Seconds> ready, std::span<const Seconds> durations,
                                std::span<const int> priorities) {
  std::vector<int> order;
  std::vector<bool> sent(ready.size());
  Seconds now;
  while (order.size() < ready.size()) {
    int best = -1;
    int earliest = -1;
    for (std::size_t i = 0; i < ready.size(); ++i) {
      if (sent[i]) continue;
      const int bucket = static_cast<int>(i);
      if (earliest < 0 || ready[i] < ready[static_cast<std::size_t>(earliest)]) earliest = bucket;
      const bool better = best < 0 || priorities[i] < priorities[static_cast<std::size_t>(best)];
      if (ready[i] <= now && better) best = bucket;
    }
    if (best < 0) {
      now = ready[static_cast<std::size_t>(earliest)];
      continue;
    }
    order.push_back(best);
    sent[static_cast<std::size_t>(best)] = true;
    now += durations[static_cast<std::size_t>(best)];
  }
  return order;
}

}  // namespace paceline::simulator

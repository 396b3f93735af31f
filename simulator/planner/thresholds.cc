// Tests: tests/simulator/planner_test.cc.
#include "simulator/planner/thresholds.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "models/collective/algorithms.h"
#include "models/collective/all_reduce.h"
#include "simulator/planner/recurrence.h"

namespace paceline::simulator {
namespace {

models::PlannedSchedule planned(std::string_view algorithm, int ranks, int group_size) {
  const models::AllReduceAlgorithm& entry = models::all_reduce_algorithm(algorithm);
  const int k = entry.takes_group ? group_size : 0;
  return {std::string(algorithm), k, entry.build({.ranks = ranks, .group_size = k})};
}

// Bisection on the size, for both times grow with it and the large algorithm moves fewer bytes.
Bytes crossing(const models::PlannedSchedule& small, const models::PlannedSchedule& large,
               Bytes most, CollectiveTimer& timer) {
  constexpr double accuracy = 1e-3;
  const auto small_is_best = [&](Bytes size) {
    return timer.time(small, size) <= timer.time(large, size);
  };
  if (small_is_best(most)) return most;
  Bytes low{0};
  Bytes high = most;
  while (high - low > std::max(Bytes{1}, accuracy * high)) {
    const Bytes middle = 0.5 * (low + high);
    (small_is_best(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

models::Thresholds resolve_thresholds(const models::Strategy& strategy,
                                      const ThresholdRequest& asked,
                                      const models::NetworkWork& network, int ranks,
                                      models::WireType wire, const ComputeTimes& compute,
                                      CollectiveTimer& timer) {
  models::Thresholds chosen;
  if (strategy.takes_group)
    chosen.group_size = asked.group_size.value_or(models::default_group_size(ranks));
  const Bytes whole = static_cast<double>(network.parameters()) * models::element_size(wire);
  if (strategy.takes_hybrid) {
    chosen.hybrid = asked.hybrid
                        ? *asked.hybrid
                        : crossing(planned(strategy.small, ranks, chosen.group_size),
                                   planned(strategy.large, ranks, chosen.group_size), whole, timer);
  }
  if (strategy.never_fuses) return chosen;
  if (asked.fusion) {
    chosen.fusion = *asked.fusion;
    return chosen;
  }
  if (!strategy.fuses) return chosen;

  const auto finish = [&](Bytes theta) {
    models::Thresholds candidate = chosen;
    candidate.fusion = theta;
    const models::Plan plan =
        models::make_plan(strategy, network.gradients, ranks, wire, candidate);
    std::vector<Seconds> durations;
    durations.reserve(plan.buckets.size());
    for (const models::Bucket& bucket : plan.buckets) {
      durations.push_back(timer.time(plan.schedules[static_cast<std::size_t>(bucket.schedule)],
                                     plan.bytes(bucket)));
    }
    return last_finish(ready_times(network, plan, compute), durations);
  };
  constexpr double least = 64.0 * 1024;
  constexpr double most = 256.0 * 1024 * 1024;
  constexpr double as_good = 1.001;
  std::vector<std::pair<Bytes, Seconds>> tried = {{Bytes{0}, finish(Bytes{0})}};
  for (double theta = least; theta <= most; theta *= 2)
    tried.emplace_back(theta, finish(Bytes{theta}));
  const auto earlier = [](const auto& a, const auto& b) { return a.second < b.second; };
  const Seconds earliest = std::min_element(tried.begin(), tried.end(), earlier)->second;
  for (const auto& [theta, time] : tried) {
    if (time <= as_good * earliest) chosen.fusion = theta;
  }
  return chosen;
}

}  // namespace paceline::simulator

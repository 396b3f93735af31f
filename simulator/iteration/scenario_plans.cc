// Tests: tests/simulator/robust_plan_test.cc.
#include "simulator/iteration/scenario_plans.h"

#include <algorithm>
#include <cmath>

#include "models/base/interval.h"
#include "models/base/to_size.h"
#include "simulator/iteration/alternatives.h"
#include "simulator/planner/optimal_fusion.h"

namespace paceline::simulator {

ScenarioPlanner::ScenarioPlanner(const models::Plan& like, const ReadJob& stated,
                                 const ReadJob& fast, const ReadJob& slow,
                                 const SampledScenario& world, std::span<const std::string> only)
    : like_(like),
      network_(stated.planning.network),
      element_bytes_(models::element_size(like.wire).value()),
      clock_(stated.planning.clock),
      stated_scenario_(world),
      sums_(element_sums(network_.gradients)),
      stated_(sums_, element_bytes_, stated, only),
      fast_(sums_, element_bytes_, fast, only),
      slow_(sums_, element_bytes_, slow, only) {}

models::Plan ScenarioPlanner::plan_of(const SampledScenario& world) const {
  const double slower = world.compute / stated_scenario_.compute;
  StreamClock clock = clock_;
  for (double& ready_s : clock.ready_s) ready_s *= slower;
  clock.computed_s *= slower;
  const Interference& interference = world.interference;
  clock.slowing = clock.slowing > 0 ? interference.most : 0;
  clock.load = {};  // `lost` has it
  const double most = std::max(clock.slowing, 1e-300);

  const Costs& end = world.links < 0 ? fast_ : slow_;
  const double reach = std::abs(world.links) / normal_reach;
  const double launch_s = (world.launch - stated_scenario_.launch).value();
  const IntervalCost as_stated = stated_.cost();
  const IntervalCost at_end = end.cost();
  const IntervalCost at_fast = fast_.cost();
  const auto cost = [&](int first, int last) {
    const BucketCost here = as_stated(first, last);
    const BucketCost there = at_end(first, last);
    // The same least time as that of sampled buckets.
    constexpr double least = 0.5;
    const double at_least_s = least * at_fast(first, last).stream_s;
    const Seconds travels{
        std::max(0.0, here.traffic_s + reach * (there.traffic_s - here.traffic_s))};
    const Bytes moved{static_cast<double>(sums_[to_size(last)] - sums_[to_size(first)]) *
                      element_bytes_};
    return BucketCost{
        std::max(at_least_s, here.stream_s + reach * (there.stream_s - here.stream_s)) + launch_s,
        interference.lost(bus_bytes(moved, like_.ranks), travels).value() / most};
  };
  const FusionOptimum optimum = optimal_fusion(clock, cost);

  PlanChange whole{ChangeKind::all_reduce, 0, static_cast<int>(like_.buckets.size()), {}};
  int first = 0;
  constexpr double nearer = 0.5;
  for (const int last : optimum.ends) {
    const Costs& costs = reach < nearer ? stated_ : end;
    whole.parts.push_back(
        {last - first, costs.candidates.schedules[to_size(costs.cost().which(first, last))]});
    first = last;
  }
  models::Plan plan = changed(like_, whole, network_.gradients);
  plan.dispatch = {};
  return plan;
}

}  // namespace paceline::simulator

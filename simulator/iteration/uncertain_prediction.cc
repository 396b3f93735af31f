// How far a predicted iteration can be from its stated time: intervals, samples of what is not known,
// and the plans that are best in such samples. Tests: tests/simulator/prediction_test.cc,
// tests/simulator/robust_plan_test.cc.
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/plan/tuned.h"
#include "simulator/cost/losses.h"
#include "simulator/iteration/plan_timing.h"
#include "simulator/iteration/prediction.h"
#include "simulator/iteration/predictor_setting.h"
#include "simulator/iteration/sampled_interval.h"
#include "simulator/iteration/scenario_plans.h"
#include "simulator/iteration/sketch.h"
#include "simulator/iteration/tuned_plan.h"
#include "simulator/iteration/ways/way_model.h"

namespace paceline::simulator {
std::vector<Seconds> SampledIteration::samples() const {
  std::vector<Seconds> times;
  for (const double factor : spread.samples()) times.push_back(factor * period);
  return times;
}

SampledIteration sampled(const StrategyPrediction& prediction) {
  const Figure<Seconds>& time = prediction.iteration;
  if (!prediction.spread.factors.empty()) return {time.value, prediction.spread};
  // The ends of the figures alone.
  const double in_order = 1 + prediction.spread.unhidden;
  IterationSpread spread = spread_between({time.low / time.value / std::min(1.0, in_order),
                                           time.high / time.value / std::max(1.0, in_order)},
                                          prediction.spread.seed);
  spread.unhidden = prediction.spread.unhidden;
  return {time.value, std::move(spread)};
}

// The interval whose ends have every figure at its fast, or every one at its slow end.
Figure<Seconds> Predictor::at_ends(const StrategyRun& stated, Ranks ranks) {
  const models::Strategy& strategy = models::strategy(stated.plan.strategy);
  const auto period = [&](Bound bound) {
    return period_of(run(stated.plan, setting(strategy, request_.ranks, bound)), ranks);
  };
  const Seconds value = period_of(stated, ranks);
  return {value, std::min(period(Bound::fast), value), std::max(period(Bound::slow), value),
          Provenance::predicted, stated.compute_source};
}

// Buckets on servers are left out: one after the other they would not only wait for each other's latency,
// but leave the links of all servers but one idle.
double Predictor::unhidden(const StrategyRun& stated, Ranks ranks) {
  const models::Strategy& strategy = models::strategy(stated.plan.strategy);
  if (stated.method.beside != Beside::other_buckets || strategy.traits().all_at_once) return 0;
  models::Plan in_order = stated.plan;
  in_order.streams = 1;
  Setting& at = setting(strategy, request_.ranks, Bound::stated);
  return period_of(run(std::move(in_order), at), ranks) / period_of(stated, ranks) - 1;
}

template <class F>
auto Predictor::with_uncertain(const StrategyRun& stated, const TimeSpent& spent, F use) {
  const models::Strategy& strategy = models::strategy(stated.plan.strategy);
  const auto setting_at = [&](Bound bound) -> Setting& {
    return setting(strategy, request_.ranks, bound);
  };
  const WayModel& model = model_of(stated.plan);
  const auto at_bound = [&](Bound bound) {
    return plan_at(stated.plan, stated.method, setting_at(bound));
  };
  const auto alone_at = [&](Bound bound) { return model.alone(at_bound(bound)); };
  const ComputeTimes alone = alone_at(Bound::stated);
  // The times for which buckets keep their stream, without their launch, which is sampled.
  const auto totals = [&](const std::vector<BucketTimes>& buckets) {
    std::vector<Seconds> times;
    for (const BucketTimes& bucket : buckets)
      times.push_back(model.on_stream(bucket, alone) - setting_at(Bound::stated).launch);
    return times;
  };
  const auto totals_at = [&](Bound bound) { return totals(model.times(at_bound(bound))); };
  std::vector<Bytes> moved;
  for (const models::Bucket& bucket : stated.plan.buckets)
    moved.push_back(stated.plan.bytes(bucket));
  const IterationSketch sketch(request_.network, stated.plan, alone);
  const models::Effects effects = *effects_of_ranks();
  const models::Device& device = request_.cluster.device;
  return use(UncertainIteration{
      .sketch = sketch,
      .buckets = {totals(stated.buckets), totals_at(Bound::fast), totals_at(Bound::slow)},
      .fast_compute = alone_at(Bound::fast).total() / alone.total(),
      .slow_compute = alone_at(Bound::slow).total() / alone.total(),
      .effects = effects,
      .ranks = request_.ranks,
      .calibrated_ranks = alone.calibrated_ranks,
      .ranks_per_node = request_.cluster.ranks_per_node,
      .multiprocessors = device.multiprocessors.value_or(0),
      .memory = device.memory_bandwidth.value,
      .moved = moved,
      .calibrated_beside = alone.beside_collectives,
      .calibrated_bus =
          calibrated_bus(alone, setting_at(Bound::stated).engine.cost(), request_.ranks),
      .by_kernels = runs_as_kernels(stated.plan),
      .exposed = spent.exposed_communication / stated.steady.period,
      .seed = request_.sampling_seed});
}

IterationSpread Predictor::spread(const StrategyRun& stated, const TimeSpent& spent, Ranks ranks) {
  IterationSpread spread = with_uncertain(stated, spent, [&](UncertainIteration iteration) {
    if (ranks == Ranks::differing && request_.stragglers)
      iteration.slowest = slowest_ranks(sampled_states);
    return sampled_spread(iteration);
  });
  spread.unhidden = unhidden(stated, ranks);
  return spread;
}

SampledIteration Predictor::sampled(const models::Plan& plan) {
  const StrategyRun stated = run(plan);
  const Seconds period = period_of(stated, Ranks::differing);
  SampledIteration iteration{period, {}};
  if (effects() != nullptr) {
    iteration.spread = spread(stated, time_spent(stated.dag, stated.steady), Ranks::differing);
    return iteration;
  }
  const Figure<Seconds> ends = at_ends(stated, Ranks::differing);
  iteration.spread =
      spread_between({ends.low / period, ends.high / period}, request_.sampling_seed);
  iteration.spread.unhidden = unhidden(stated, Ranks::differing);
  if (!request_.stragglers) return iteration;
  const std::vector<Seconds> times = straggling(stated.dag);
  for (std::size_t i = 0; i < times.size(); ++i) iteration.spread.factors[i] *= times[i] / period;
  return iteration;
}

Seconds Predictor::period_of(const StrategyRun& run, Ranks ranks) const {
  if (ranks == Ranks::alike || !request_.stragglers) return run.steady.period;
  Seconds sum;
  for (const Seconds time : straggling(run.dag)) sum += time;
  return sum / static_cast<double>(sampled_states);
}

std::vector<models::Plan> Predictor::plans_of_worlds(const models::Plan& plan, int count,
                                                     const std::vector<std::string>& only,
                                                     const std::function<bool()>& stop) {
  std::vector<models::Plan> plans;
  const auto add = [&](models::Plan other) {
    other.streams = plan.streams;
    if (std::find(plans.begin(), plans.end(), other) == plans.end())
      plans.push_back(std::move(other));
  };
  const auto at_bound = [&](Bound bound) -> Setting& {
    return setting_of(only, request_.ranks, bound);
  };
  if (effects() == nullptr) {
    for (const Bound bound : {Bound::fast, Bound::slow})
      if (!stop || !stop())
        add(tune({.all_reduces = only, .stop = [] { return true; }}, plan.overlap, at_bound(bound))
                .plan);
    return plans;
  }
  const auto readable = [&](Bound bound) {
    Setting& at = at_bound(bound);
    return ReadJob{planning_job(models::tuned_strategy(), plan.overlap, false, at),
                   {at.alone_by_steps(), std::nullopt}};
  };
  const StrategyRun stated = run(plan);
  const SampledScenarios worlds =
      with_uncertain(stated, time_spent(stated.dag, stated.steady), sampled_scenarios);
  ScenarioPlanner planner(plan, readable(Bound::stated), readable(Bound::fast),
                          readable(Bound::slow), worlds.stated, only);
  const std::vector<double> slowest = slowest_ranks(static_cast<int>(worlds.worlds.size()));
  for (int i = 0; i < std::min<int>(count, static_cast<int>(std::ssize(worlds.worlds))); ++i) {
    if (stop && stop()) break;
    SampledScenario world = worlds.worlds[static_cast<std::size_t>(i)];
    world.compute *= slowest[static_cast<std::size_t>(i)];
    add(planner.plan_of(world));
  }
  return plans;
}

}  // namespace paceline::simulator

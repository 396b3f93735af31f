// Tests: tests/simulator/prediction_test.cc, tests/simulator/robust_plan_test.cc.
#include "simulator/prediction/uncertainty.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/base/to_size.h"
#include "models/plan/tuned.h"
#include "simulator/cost/losses.h"
#include "simulator/iteration/sampled_interval.h"
#include "simulator/iteration/scenario_plans.h"
#include "simulator/iteration/sketch.h"
#include "simulator/prediction/job_plans.h"
#include "simulator/straggler/compute_factors.h"

namespace paceline::simulator {
namespace {

// An iteration with stragglers for each sampled state.
std::vector<Seconds> straggling(const PredictionRequest& request, const IterationDag& dag) {
  MonteCarloRequest stragglers = *request.stragglers;
  PACELINE_ASSERT(stragglers.stragglers.backup == 0, "every state has the samples of all ranks");
  stragglers.iterations = sampled_states;
  return iteration_times(dag, request.ranks, stragglers);
}

// How many times as long as stated the slowest rank computes in each of this many sampled states; 1
// where the request has no stragglers.
std::vector<double> slowest_ranks(const PredictionRequest& request, int states) {
  std::vector<double> slowest(to_size(states), 1);
  if (!request.stragglers) return slowest;
  ComputeFactors factors(request.stragglers->stragglers, request.ranks, request.stragglers->seed);
  for (int i = 0; i < left_out_iterations(states); ++i) static_cast<void>(factors.next());
  for (double& factor : slowest) {
    const std::span<const double> of_ranks = factors.next();
    factor = *std::max_element(of_ranks.begin(), of_ranks.end());
  }
  return slowest;
}

// The steady period, or the mean of the iterations with stragglers.
Seconds period_of(const PredictionRequest& request, const StrategyRun& run, Ranks ranks) {
  if (ranks == Ranks::alike || !request.stragglers) return run.steady.period;
  Seconds sum;
  for (const Seconds time : straggling(request, run.dag)) sum += time;
  return sum / static_cast<double>(sampled_states);
}

// use(UncertainIteration) of the run.
template <class F>
auto with_uncertain(JobSettings& settings, const StrategyRun& stated, const TimeSpent& spent,
                    F use) {
  const PredictionRequest& request = settings.request();
  const models::Strategy& strategy = models::strategy_of(stated.plan);
  const auto setting_at = [&](Bound bound) -> PredictorSetting& {
    return settings.at(strategy, request.ranks, bound);
  };
  const WayModel& model = model_of(stated.plan);
  const auto at_bound = [&](Bound bound) {
    return plan_at(settings, stated.plan, stated.method, setting_at(bound));
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
  const bool is_mesh = stated.plan.layout != models::Layout{};
  // The exchanges of ranks of one sample count as one more bucket, which slows no computation.
  const auto totals_at = [&](Bound bound) {
    std::vector<Seconds> times =
        totals(bound == Bound::stated ? stated.buckets : model.times(at_bound(bound)));
    if (is_mesh) times.push_back(setting_at(bound).alone.layout.communication());
    return times;
  };
  std::vector<Bytes> moved;
  for (const models::Bucket& bucket : stated.plan.buckets)
    moved.push_back(model.moved(at_bound(Bound::stated), bucket));
  if (is_mesh) moved.emplace_back(0);
  const IterationSketch sketch = model.sketch(at_bound(Bound::stated), alone, stated.buckets);
  const models::Effects effects = *settings.effects_of_ranks();
  const models::Device& device = request.cluster.device;
  return use(UncertainIteration{
      .sketch = sketch,
      .buckets = {totals_at(Bound::stated), totals_at(Bound::fast), totals_at(Bound::slow)},
      .fast_compute = alone_at(Bound::fast).total() / alone.total(),
      .slow_compute = alone_at(Bound::slow).total() / alone.total(),
      .effects = effects,
      .ranks = settings.all_ranks(request.ranks),
      .calibrated_ranks = alone.calibrated_ranks,
      .ranks_per_node = settings.whole().cluster.ranks_per_node,
      .multiprocessors = device.multiprocessors.value_or(0),
      .memory = device.memory_bandwidth.value,
      .moved = moved,
      .calibrated_beside = alone.beside_collectives,
      .calibrated_bus =
          settings.calibrated_bus(alone, setting_at(Bound::stated).engine.cost(), request.ranks),
      .by_kernels = runs_as_kernels(stated.plan),
      .exposed = spent.exposed_communication / stated.steady.period,
      .seed = request.sampling_seed});
}

}  // namespace

std::vector<Seconds> SampledIteration::samples() const {
  std::vector<Seconds> times;
  for (const double factor : spread.samples()) times.push_back(factor * period);
  return times;
}

// The interval whose ends have every figure at its fast, or every one at its slow end.
Figure<Seconds> at_ends(JobSettings& settings, const StrategyRun& stated, Ranks ranks) {
  const models::Strategy& strategy = models::strategy_of(stated.plan);
  const auto period = [&](Bound bound) {
    PredictorSetting& at = settings.at(strategy, settings.request().ranks, bound);
    return period_of(settings.request(), run_of(settings, stated.plan, at), ranks);
  };
  const Seconds value = period_of(settings.request(), stated, ranks);
  return {value, std::min(period(Bound::fast), value), std::max(period(Bound::slow), value),
          Provenance::predicted, stated.compute_source};
}

// Buckets on servers are left out: one after the other they would not only wait for each other's latency,
// but leave the links of all servers but one idle.
double unhidden(JobSettings& settings, const StrategyRun& stated, Ranks ranks) {
  const models::Strategy& strategy = models::strategy_of(stated.plan);
  if (stated.method.beside != Beside::other_buckets || strategy.traits().all_at_once) return 0;
  models::Plan in_order = stated.plan;
  in_order.streams = 1;
  const PredictionRequest& request = settings.request();
  PredictorSetting& at = settings.at(strategy, request.ranks, Bound::stated);
  return period_of(request, run_of(settings, std::move(in_order), at), ranks) /
             period_of(request, stated, ranks) -
         1;
}

IterationSpread spread_of(JobSettings& settings, const StrategyRun& stated, const TimeSpent& spent,
                          Ranks ranks) {
  IterationSpread spread =
      with_uncertain(settings, stated, spent, [&](UncertainIteration iteration) {
        if (ranks == Ranks::differing && settings.request().stragglers)
          iteration.slowest = slowest_ranks(settings.request(), sampled_states);
        return sampled_spread(iteration);
      });
  spread.unhidden = unhidden(settings, stated, ranks);
  return spread;
}

SampledIteration sampled(JobSettings& settings, const StrategyRun& stated) {
  const PredictionRequest& request = settings.request();
  const Seconds period = period_of(request, stated, Ranks::differing);
  SampledIteration iteration{period, {}};
  if (settings.effects() != nullptr) {
    iteration.spread =
        spread_of(settings, stated, time_spent(stated.dag, stated.steady), Ranks::differing);
    return iteration;
  }
  const Figure<Seconds> ends = at_ends(settings, stated, Ranks::differing);
  iteration.spread = spread_between({ends.low / period, ends.high / period}, request.sampling_seed);
  iteration.spread.unhidden = unhidden(settings, stated, Ranks::differing);
  if (!request.stragglers) return iteration;
  const std::vector<Seconds> times = straggling(request, stated.dag);
  for (std::size_t i = 0; i < times.size(); ++i) iteration.spread.factors[i] *= times[i] / period;
  return iteration;
}

std::vector<models::Plan> plans_of_worlds(JobSettings& settings, const StrategyRun& stated,
                                          int count, const std::vector<std::string>& only,
                                          const std::function<bool()>& stop) {
  const PredictionRequest& request = settings.request();
  const models::Plan& plan = stated.plan;
  std::vector<models::Plan> plans;
  const auto add = [&](models::Plan other) {
    other.streams = plan.streams;
    if (std::find(plans.begin(), plans.end(), other) == plans.end())
      plans.push_back(std::move(other));
  };
  const auto at_bound = [&](Bound bound) -> PredictorSetting& {
    return settings.at(only, request.ranks, bound);
  };
  if (settings.effects() == nullptr) {
    for (const Bound bound : {Bound::fast, Bound::slow})
      if (!stop || !stop())
        add(tune(settings, {.all_reduces = only, .stop = [] { return true; }}, plan.overlap,
                 at_bound(bound))
                .plan);
    return plans;
  }
  const auto readable = [&](Bound bound) {
    PredictorSetting& at = at_bound(bound);
    return ReadJob{planning_job(settings, models::tuned_strategy(), plan.overlap, false, at),
                   {at.alone_by_steps(), std::nullopt}};
  };
  const SampledScenarios worlds =
      with_uncertain(settings, stated, time_spent(stated.dag, stated.steady), sampled_scenarios);
  ScenarioPlanner planner(plan, readable(Bound::stated), readable(Bound::fast),
                          readable(Bound::slow), worlds.stated, only);
  const std::vector<double> slowest =
      slowest_ranks(request, static_cast<int>(worlds.worlds.size()));
  for (int i = 0; i < std::min<int>(count, static_cast<int>(std::ssize(worlds.worlds))); ++i) {
    if (stop && stop()) break;
    SampledScenario world = worlds.worlds[to_size(i)];
    world.compute *= slowest[to_size(i)];
    add(planner.plan_of(world));
  }
  return plans;
}

}  // namespace paceline::simulator

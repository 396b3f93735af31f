// Tests: tests/simulator/prediction_test.cc.
#include "simulator/prediction/prediction.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/plan/not_of_strategy.h"
#include "simulator/iteration/alternatives.h"
#include "simulator/iteration/better_links.h"
#include "simulator/iteration/plan_timing.h"
#include "simulator/planner/candidates.h"
#include "simulator/prediction/job_plans.h"

namespace paceline::simulator {
namespace {

// The shares of the critical path of one period, in the order of TaskKind. Kinds of tasks that are
// not on the path are left out.
std::vector<PathShare> path_shares(const IterationDag& dag, const CriticalPath& path) {
  std::vector<PathShare> shares;
  for (const CriticalTask& step : path.tasks) {
    const Task& task = dag.tasks()[to_size(step.task)];
    for (const TaskPart& part : dag.parts(step.task)) {
      auto share = std::find_if(shares.begin(), shares.end(),
                                [&](const PathShare& s) { return s.kind == part.kind; });
      if (share == shares.end()) share = shares.insert(shares.end(), {part.kind, Seconds{0}});
      share->time += part.share * task.duration / path.periods;
    }
  }
  std::sort(shares.begin(), shares.end(),
            [](const PathShare& a, const PathShare& b) { return a.kind < b.kind; });
  return shares;
}

StragglerPrediction with_stragglers(const JobSettings& settings, const IterationDag& dag) {
  const int ranks = settings.request().ranks;
  const MonteCarloRequest& request = *settings.request().stragglers;
  StragglerPrediction prediction;
  prediction.iteration = summary(iteration_times(dag, ranks, request));
  prediction.counted_ranks = ranks - request.stragglers.backup;
  prediction.throughput = static_cast<double>(prediction.counted_ranks) *
                          settings.samples_per_rank() / prediction.iteration.mean;
  return prediction;
}

}  // namespace

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

StrategyRun Predictor::run(const models::Strategy& named) {
  const models::Strategy& strategy = settings_.as_run(named);
  PredictorSetting& at = settings_.at(strategy, settings_.request().ranks, Bound::stated);
  return run_of(settings_,
                plan_of(settings_, strategy, thresholds_of(settings_, strategy, at).thresholds),
                at);
}

StrategyRun Predictor::run(const models::Plan& plan) {
  return run_of(settings_, plan,
                settings_.at(models::strategy_of(plan), settings_.request().ranks, Bound::stated));
}

Seconds Predictor::iteration(const models::Strategy& strategy) {
  return run(strategy).steady.period;
}

Seconds Predictor::forward_pass(int batch_per_rank) {
  PredictionRequest request = settings_.request();
  request.batch_per_rank = batch_per_rank;
  request.accumulate = 1;
  JobSettings evaluation(request);
  const PredictorSetting& at = evaluation.at(request.ranks, Bound::stated);
  Seconds forward;
  for (const LayerTime& layer : at.compute.layers) forward += layer.forward;
  return std::max({forward, at.input.read, at.input.decode, at.input.host_to_device});
}

StrategyPrediction Predictor::predict(const models::Strategy& named) {
  const models::Strategy& strategy = settings_.as_run(named);
  PredictorSetting& at = settings_.at(strategy, settings_.request().ranks, Bound::stated);
  const ChosenThresholds chosen = thresholds_of(settings_, strategy, at);
  return predict(plan_of(settings_, strategy, chosen.thresholds), chosen);
}

StrategyPrediction Predictor::predict(const models::Plan& plan) {
  return predict(plan, std::nullopt);
}

StrategyPrediction Predictor::predict(models::Plan plan, std::optional<ChosenThresholds> chosen) {
  const PredictionRequest& request = settings_.request();
  PACELINE_ASSERT(plan.ranks == request.ranks, "the plan is for the request's ranks");
  const models::Strategy& strategy = models::strategy_of(plan);
  if (request.stragglers && !strategy.traits().may_straggle)
    throw models::NotOfStrategy(
        {"--strategy"}, fmt::format("no stragglers are simulated with {}", strategy.name),
        "leave out --spread, --slow-rank and --backup, or choose another strategy");
  PredictorSetting& stated = settings_.at(strategy, request.ranks, Bound::stated);
  StrategyRun at_stated = run_of(settings_, plan, stated);
  const Seconds period = at_stated.steady.period;
  const int p0 = request.baseline_ranks.value_or(baseline_ranks(request.cluster, request.ranks));

  StrategyPrediction prediction;
  prediction.name = strategy.name;
  if (chosen) {
    prediction.thresholds = chosen->thresholds;
    prediction.alike_groups = std::move(chosen->alike_groups);
    prediction.alike_segments = std::move(chosen->alike_segments);
  }
  prediction.spent = time_spent(at_stated.dag, at_stated.steady);
  if (settings_.effects() != nullptr) {
    prediction.spread = spread_of(settings_, at_stated, prediction.spent, Ranks::alike);
    const IntervalFactors factors = prediction.spread.interval();
    prediction.iteration = {period, factors.low * period, factors.high * period,
                            Provenance::predicted, at_stated.compute_source};
  } else {
    prediction.iteration = at_ends(settings_, at_stated, Ranks::alike);
    prediction.spread.seed = request.sampling_seed;
    prediction.spread.unhidden = unhidden(settings_, at_stated, Ranks::alike);
    prediction.iteration.low *= std::min(1.0, 1 + prediction.spread.unhidden);
    prediction.iteration.high *= std::max(1.0, 1 + prediction.spread.unhidden);
  }
  prediction.throughput =
      static_cast<double>(request.ranks) * settings_.samples_per_rank() / period;
  prediction.utilization = utilization(settings_.whole(), prediction.throughput);
  // Each rank has the same batch on p as on p0, so that throughputs are as the iteration times.
  const models::Plan baseline_plan = simulator::baseline_plan(settings_, strategy, plan, p0);
  const Seconds baseline = baseline_plan == plan ? period
                                                 : run_of(settings_, baseline_plan,
                                                          settings_.at(strategy, p0, Bound::stated))
                                                       .steady.period;
  prediction.efficiency = baseline / period;
  // Ranks of one context share their samples.
  prediction.baseline_ranks = settings_.all_ranks(p0);
  prediction.critical_path =
      path_shares(at_stated.dag, critical_path(at_stated.dag, at_stated.steady));
  prediction.by_library_model = strategy.sharded() != nullptr
                                    ? stated.groups->are_by_nccl() && plan.ranks > 1
                                    : strategy.library() == models::Library::nccl &&
                                          stated.curve_of(models::Library::nccl) == nullptr;
  prediction.timed_by = at_stated.timed_by;
  prediction.better_links_may_slow =
      why_better_links_may_slow(plan, at_stated.method, prediction.by_library_model);
  if (!at_stated.buckets.empty()) {
    if (const KfacTimes* k_fac = at_stated.buckets.front().k_fac()) prediction.k_fac = *k_fac;
  }
  prediction.compute_source = at_stated.compute_source;
  prediction.engine = at_stated.method.engine;
  prediction.not_followed = at_stated.method.not_followed;
  prediction.converged = at_stated.steady.converged;
  if (request.stragglers) {
    prediction.stragglers = with_stragglers(settings_, at_stated.dag);
    const double counted = static_cast<double>(prediction.stragglers->counted_ranks) /
                           static_cast<double>(request.ranks);
    prediction.stragglers->efficiency =
        counted * (baseline / prediction.stragglers->iteration.mean);
  }
  const MemoryRequest memory = memory_request(settings_.whole().network, plan, request);
  const Bytes capacity = request.cluster.device.memory.value;
  prediction.memory = device_memory(memory);
  prediction.fits = prediction.memory.total() <= capacity;
  prediction.largest_batch = largest_batch(memory, capacity);
  prediction.plan = std::move(plan);
  prediction.run = std::make_shared<const StrategyRun>(std::move(at_stated));
  return prediction;
}

std::variant<StrategyPrediction, LeftOut> Predictor::row(const models::Strategy& strategy) {
  try {
    return predict(strategy);
  } catch (const FollowingTakesLong& error) {
    return LeftOut{std::string(strategy.name), settings_.request().wire, error.problem(),
                   fmt::format("--strategy {} asks for it", strategy.name)};
  } catch (const FollowingTakesTooMuch& error) {
    return LeftOut{std::string(strategy.name), settings_.request().wire, error.problem(),
                   error.remedy()};
  } catch (const TooManyMessages& error) {
    // The flow engine follows fewer messages than are prepared in time, and the step engine times
    // more of them.
    const bool is_bounded = settings_.request().time_budget != TimeBudget::unlimited;
    return LeftOut{std::string(strategy.name), settings_.request().wire, error.problem(),
                   is_bounded
                       ? fmt::format("--strategy {} --engine step asks for it", strategy.name)
                       : error.remedy()};
  } catch (const models::NotOfStrategy& error) {
    return LeftOut{std::string(strategy.name), settings_.request().wire, error.problem(),
                   error.remedy(), /*takes_long=*/false};
  }
}

TunedPlan Predictor::tune(const TuningRequest& request) {
  const PredictionRequest& job = settings_.request();
  return simulator::tune(settings_, request, job.overlap,
                         settings_.at(request.all_reduces, job.ranks, Bound::stated));
}

std::vector<std::vector<Alternative>> Predictor::alternatives(const models::Plan& plan,
                                                              const std::function<bool()>& stop) {
  std::vector<std::string> only;
  if (const auto* library = plan.uses<models::Library>()) only.emplace_back(name(*library));
  PredictorSetting& at = settings_.at(only, settings_.request().ranks, Bound::stated);
  const TuningJob job = tuning_job(settings_, plan.overlap, plan.streams, at);
  return simulator::alternatives(job, make_candidates(job.planning, job.timers, only), plan, only,
                                 stop);
}

SampledIteration Predictor::sampled(const models::Plan& plan) {
  return simulator::sampled(settings_, run(plan));
}

std::vector<models::Plan> Predictor::plans_of_worlds(const models::Plan& plan, int count,
                                                     const std::vector<std::string>& only,
                                                     const std::function<bool()>& stop) {
  return simulator::plans_of_worlds(settings_, run(plan), count, only, stop);
}

}  // namespace paceline::simulator

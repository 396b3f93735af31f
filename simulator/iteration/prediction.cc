// Tests: tests/simulator/prediction_test.cc.
#include "simulator/iteration/prediction.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <utility>

#include "models/base/error.h"
#include "models/cluster/placement.h"
#include "models/collective/algorithms.h"
#include "simulator/cost/dispatch_cost.h"
#include "simulator/cost/losses.h"
#include "simulator/engine/effort.h"
#include "simulator/engine/prepared_schedules.h"
#include "simulator/iteration/better_links.h"
#include "simulator/iteration/bucket_times.h"
#include "simulator/iteration/plan_timing.h"
#include "simulator/iteration/predictor_setting.h"
#include "simulator/iteration/sampled_interval.h"
#include "simulator/iteration/ways/way_model.h"
#include "simulator/planner/cycles.h"
#include "simulator/straggler/compute_factors.h"

namespace paceline::simulator {
namespace {

// The passes of all batches but the last stand before its forward pass: none of them sends anything.
ComputeTimes accumulated(ComputeTimes compute, int batches) {
  if (batches > 1) compute.earlier = {batches - 1, compute.layers};
  Seconds pass;
  for (const LayerTime& layer : compute.layers) pass += layer.forward + layer.backward;
  if (!compute.layers.empty())
    compute.layers.front().forward += static_cast<double>(batches - 1) * pass;
  if (!compute.beside_traffic.empty())
    compute.beside_traffic.front().forward += static_cast<double>(batches - 1) * pass;
  return compute;
}

// The times to read, decode and copy the batches of all ranks of a node, which share its storage and
// its CPUs. Decoded samples are copied to the device as FP32, over its host link.
InputTimes input_times(const PredictionRequest& request, int ranks, Bound bound) {
  const models::Cluster& cluster = request.cluster;
  const double batches = request.accumulate;  // of an iteration
  const double node_samples = batches * static_cast<double>(request.batch_per_rank) *
                              std::min(ranks, cluster.ranks_per_node);
  InputTimes times;
  if (cluster.storage && request.stored_sample > Bytes{0}) {
    times.read = node_samples * request.stored_sample / rate_at(*cluster.storage, bound);
  }
  if (cluster.decode_per_node)
    times.decode = node_samples / rate_at(*cluster.decode_per_node, bound);
  const models::Link& host = cluster.host_link                    ? *cluster.host_link
                             : cluster.host && cluster.host->lane ? *cluster.host->lane
                                                                  : cluster.intra;
  const Bytes batch_bytes = static_cast<double>(request.batch_per_rank) *
                            static_cast<double>(request.network.input_elements) * Bytes{4};
  times.host_to_device = batches * cost_at(host.latency, bound) +
                         batches * batch_bytes / rate_at(host.bandwidth, bound);
  return times;
}

// The shares of the critical path of one period, in the order of TaskKind. Kinds of tasks that are
// not on the path are left out.
std::vector<PathShare> path_shares(const IterationDag& dag, const CriticalPath& path) {
  std::vector<PathShare> shares;
  for (const CriticalTask& step : path.tasks) {
    const Task& task = dag.tasks()[static_cast<std::size_t>(step.task)];
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

// Whether compute times differ by it at all.
bool spreads(const models::ComputeSpread& spread) {
  return spread.kind == models::SpreadKind::empirical || spread.parameter > 0;
}

}  // namespace

const models::Effects* effects_of(const models::Cluster& cluster, const models::Profile* profile,
                                  bool compute_is_exact) {
  const bool is_known = compute_is_exact || (profile != nullptr && profile->transport.has_value());
  return cluster.effects && !is_known ? &*cluster.effects : nullptr;
}

PredictionRequest PredictionRequest::on(const models::Cluster& other,
                                        const models::Profile* other_profile) const {
  return {*this,         network,     other, other_profile, ranks, wire,
          stored_sample, time_budget, {},    sampling_seed};
}

int baseline_ranks(const models::Cluster& cluster, int ranks) {
  return ranks >= cluster.ranks_per_node ? cluster.ranks_per_node : 1;
}

Predictor::Predictor(const PredictionRequest& request)
    : request_(request), schedules_(std::make_shared<PreparedSchedules>()) {
  models::check_ranks(request.cluster, request.ranks);
  if (request.batch_per_rank < 1) {
    throw InputError(fmt::format("a batch of {} samples", request.batch_per_rank),
                     "choose at least 1 per rank");
  }
  if (request.accumulate < 1)
    throw InputError({"--accumulate"}, fmt::format("{} batches", request.accumulate),
                     "choose at least 1");
  if (request.baseline_ranks &&
      (*request.baseline_ranks < 1 || *request.baseline_ranks > request.ranks))
    throw InputError(
        {"--baseline"},
        fmt::format("{} ranks are no baseline of {}", *request.baseline_ranks, request.ranks),
        fmt::format("choose 1 to {}", request.ranks));
  if (!request.stragglers) return;
  const models::Stragglers& stragglers = request.stragglers->stragglers;
  for (const auto& [rank, factor] : stragglers.slow_ranks) {
    if (rank >= request.ranks)
      throw InputError({"--slow-rank"},
                       fmt::format("rank {} is not among {} ranks", rank, request.ranks),
                       fmt::format("choose 0 to {}", request.ranks - 1));
  }
  if (stragglers.backup >= request.ranks)
    throw InputError(
        {"--backup"},
        fmt::format("{} backup ranks among {} leave none to wait for", stragglers.backup,
                    request.ranks),
        fmt::format("choose 0 to {}: --ranks counts the backup ranks, too", request.ranks - 1));
}

Predictor::Setting& Predictor::setting(int ranks, Bound bound) {
  for (const auto& known : settings_) {
    if (known->ranks == ranks && known->bound == bound) return *known;
  }
  const ComputeRequest request{request_.network,   request_.cluster.device, request_.profile,
                               request_.precision, request_.batch_per_rank, ranks,
                               effects()};
  const CommunicationCost cost =
      communication_cost(request_.cluster, request_.profile, bound, ranks);
  const ComputeTimes alone =
      accumulated(compute_times(request, request_.compute_is_exact ? Bound::stated : bound),
                  request_.accumulate);
  const std::int64_t most_messages = request_.time_budget != TimeBudget::unlimited
                                         ? most_prepared_in_time
                                         : most_prepared_messages;
  settings_.push_back(std::make_shared<Setting>(
      Setting{ranks,
              bound,
              alone,
              slowest(alone, cost, ranks),
              effects() != nullptr ? effects()->collective_launch.value : Seconds{0},
              request_.compute_is_exact ? InputTimes{} : input_times(request_, ranks, bound),
              effective_memory_bandwidth(request_.cluster.device, bound),
              CollectiveTimer(cost, EngineKind::step, most_messages, schedules_),
              CollectiveTimer(cost, request_.engine, most_prepared_messages, schedules_),
              {},
              std::nullopt}));
  return *settings_.back();
}

const models::Effects* Predictor::effects() const {
  return effects_of(request_.cluster, request_.profile, request_.compute_is_exact);
}

BytesPerSecond Predictor::calibrated_bus(const ComputeTimes& alone, const CommunicationCost& cost,
                                         int ranks) const {
  if (alone.calibrated_ranks == 1) return bus_bandwidth(cost, ranks);
  return bus_bandwidth(
      communication_cost(request_.cluster, request_.profile, Bound::stated, alone.calibrated_ranks),
      alone.calibrated_ranks);
}

Interference Predictor::interference(const ComputeTimes& alone, const CommunicationCost& cost,
                                     int ranks) const {
  const models::Device& device = request_.cluster.device;
  Interference estimate;
  if (effects() != nullptr && cost.platform == nullptr)
    estimate = estimated_interference(stated_losses(*effects()), device.multiprocessors.value_or(0),
                                      device.memory_bandwidth.value);
  if (!alone.beside_collectives) return estimate;
  return calibrated_interference(estimate, alone.beside_collectives->value,
                                 calibrated_bus(alone, cost, ranks));
}

// Where the request has a spread of its own, ranks differ by that alone.
std::optional<models::Effects> Predictor::effects_of_ranks() const {
  if (effects() == nullptr) return std::nullopt;
  models::Effects effects = *this->effects();
  if (request_.stragglers && spreads(request_.stragglers->stragglers.spread)) {
    const auto none = Figure<double>::exact(0, Provenance::assumed, "ranks differ by their spread");
    effects.rank_spread = effects.jitter = none;
  }
  return effects;
}

ComputeTimes Predictor::slowest(const ComputeTimes& alone, const CommunicationCost& cost,
                                int ranks) const {
  if (ranks == 1) return alone;
  const std::optional<models::Effects> effects = effects_of_ranks();
  const double waiting =
      effects ? waiting_factor(stated_losses(*effects), {ranks, request_.cluster.ranks_per_node})
              : 1;
  return slowed(alone, waiting, interference(alone, cost, ranks), ranks);
}

Predictor::Setting& Predictor::setting(const models::Strategy& strategy, int ranks, Bound bound) {
  Setting& at = setting(ranks, bound);
  const auto library = strategy.library();
  if (!library || at.curve_of(*library) != nullptr) return at;
  const LibraryJob job{ranks, ranks > request_.cluster.ranks_per_node, request_.wire};
  auto curve = LibraryCurve::find(request_.profile, *library, job, bound);
  if (curve) {
    at.curves.emplace(*library, *std::move(curve));
  } else if (library == models::Library::nccl && !at.nccl) {
    if (!nccl_tables_)
      nccl_tables_ = nccl_tables(request_.nccl_version.empty() ? nccl_versions().back()
                                                               : request_.nccl_version);
    at.nccl.emplace(*nccl_tables_, request_.cluster, ranks, at.engine.cost(), bound);
  }
  return at;
}

PlanAt Predictor::plan_at(const models::Plan& plan, TimingMethod method, Setting& at) const {
  return {request_.network, request_.cluster, request_, plan, method, at};
}

StrategyRun Predictor::run(models::Plan plan, Setting& at) const {
  const TimingMethod method = timing_method(plan, at.engine, request_.time_budget);
  const std::vector<BucketTimes> buckets = model_of(plan).times(plan_at(plan, method, at));
  PlanTimer timer(plan, method, at.engine.cost());
  const auto timed_with = [&](const ComputeTimes& compute) {
    IterationDag dag(request_.network, plan, compute, buckets, at.input);
    return timer.timed(std::move(dag));
  };
  const ComputeTimes compute = with_tasks(at.compute, request_.network, plan, at.bound);
  TimedIteration iteration{timed_with(compute), {}};
  iteration.steady = steady_state(iteration.dag);
  const bool slows =
      plan.ranks > 1 && !at.compute.beside_traffic.empty() && !request_.compute_is_exact;
  if (slows) iteration = stretched(std::move(iteration), compute, timed_with);
  std::string timed_by = model_of(plan).timed_by(plan_at(plan, method, at));
  return {
      std::move(plan),     std::move(iteration.dag), std::move(iteration.steady), method, buckets,
      std::move(timed_by), at.compute.source};
}

StrategyRun Predictor::run(const models::Strategy& strategy) {
  Setting& at = setting(strategy, request_.ranks, Bound::stated);
  return run(plan(strategy, thresholds(strategy, at).thresholds), at);
}

StrategyRun Predictor::run(const models::Plan& plan) {
  return run(plan, setting(models::strategy(plan.strategy), request_.ranks, Bound::stated));
}

Seconds Predictor::iteration(const models::Strategy& strategy) {
  return run(strategy).steady.period;
}

Seconds Predictor::forward_pass(int batch_per_rank) {
  PredictionRequest request = request_;
  request.batch_per_rank = batch_per_rank;
  request.accumulate = 1;
  Predictor evaluation(request);
  const Setting& at = evaluation.setting(request.ranks, Bound::stated);
  Seconds forward;
  for (const LayerTime& layer : at.compute.layers) forward += layer.forward;
  return std::max({forward, at.input.read, at.input.decode, at.input.host_to_device});
}

StragglerPrediction Predictor::with_stragglers(const IterationDag& dag) const {
  const MonteCarloRequest& request = *request_.stragglers;
  StragglerPrediction prediction;
  prediction.iteration = summary(iteration_times(dag, request_.ranks, request));
  prediction.counted_ranks = request_.ranks - request.stragglers.backup;
  prediction.throughput = static_cast<double>(prediction.counted_ranks) * samples_per_rank() /
                          prediction.iteration.mean;
  return prediction;
}

std::vector<Seconds> Predictor::straggling(const IterationDag& dag) const {
  MonteCarloRequest stragglers = *request_.stragglers;
  PACELINE_ASSERT(stragglers.stragglers.backup == 0, "every state has the samples of all ranks");
  stragglers.iterations = sampled_states;
  return iteration_times(dag, request_.ranks, stragglers);
}

std::vector<double> Predictor::slowest_ranks(int states) const {
  std::vector<double> slowest(static_cast<std::size_t>(states), 1);
  if (!request_.stragglers) return slowest;
  ComputeFactors factors(request_.stragglers->stragglers, request_.ranks,
                         request_.stragglers->seed);
  for (int i = 0; i < left_out_iterations(states); ++i) static_cast<void>(factors.next());
  for (double& factor : slowest) {
    const std::span<const double> of_ranks = factors.next();
    factor = *std::max_element(of_ranks.begin(), of_ranks.end());
  }
  return slowest;
}

StrategyPrediction Predictor::predict(const models::Strategy& strategy) {
  const ChosenThresholds chosen =
      thresholds(strategy, setting(strategy, request_.ranks, Bound::stated));
  return predict(plan(strategy, chosen.thresholds), chosen);
}

StrategyPrediction Predictor::predict(const models::Plan& plan) {
  return predict(plan, std::nullopt);
}

StrategyPrediction Predictor::predict(models::Plan plan, std::optional<ChosenThresholds> chosen) {
  PACELINE_ASSERT(plan.ranks == request_.ranks, "the plan is for the request's ranks");
  const models::Strategy& strategy = models::strategy(plan.strategy);
  if (request_.stragglers && !strategy.traits().may_straggle)
    throw InputError({"--strategy"},
                     fmt::format("no stragglers are simulated with {}", strategy.name),
                     "leave out --spread, --slow-rank and --backup, or choose another strategy");
  Setting& stated = setting(strategy, request_.ranks, Bound::stated);
  StrategyRun at_stated = run(plan, stated);
  const Seconds period = at_stated.steady.period;
  const int p0 = request_.baseline_ranks.value_or(baseline_ranks(request_.cluster, request_.ranks));

  StrategyPrediction prediction;
  prediction.name = strategy.name;
  if (chosen) {
    prediction.thresholds = chosen->thresholds;
    prediction.alike_groups = std::move(chosen->alike_groups);
    prediction.alike_segments = std::move(chosen->alike_segments);
  }
  prediction.spent = time_spent(at_stated.dag, at_stated.steady);
  if (effects() != nullptr) {
    prediction.spread = spread(at_stated, prediction.spent, Ranks::alike);
    const IntervalFactors factors = prediction.spread.interval();
    prediction.iteration = {period, factors.low * period, factors.high * period,
                            Provenance::predicted, at_stated.compute_source};
  } else {
    prediction.iteration = at_ends(at_stated, Ranks::alike);
    prediction.spread.seed = request_.sampling_seed;
    prediction.spread.unhidden = unhidden(at_stated, Ranks::alike);
    prediction.iteration.low *= std::min(1.0, 1 + prediction.spread.unhidden);
    prediction.iteration.high *= std::max(1.0, 1 + prediction.spread.unhidden);
  }
  prediction.throughput = static_cast<double>(request_.ranks) * samples_per_rank() / period;
  // Each rank has the same batch on p as on p0, so that throughputs are as the iteration times.
  const models::Plan baseline_plan = this->baseline_plan(strategy, plan, p0);
  const Seconds baseline =
      baseline_plan == plan
          ? period
          : run(baseline_plan, setting(strategy, p0, Bound::stated)).steady.period;
  prediction.efficiency = baseline / period;
  prediction.baseline_ranks = p0;
  prediction.critical_path =
      path_shares(at_stated.dag, critical_path(at_stated.dag, at_stated.steady));
  prediction.by_library_model = strategy.library() == models::Library::nccl &&
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
  if (request_.stragglers) {
    prediction.stragglers = with_stragglers(at_stated.dag);
    const double counted = static_cast<double>(prediction.stragglers->counted_ranks) /
                           static_cast<double>(request_.ranks);
    prediction.stragglers->efficiency =
        counted * (baseline / prediction.stragglers->iteration.mean);
  }
  const MemoryRequest memory{request_.network, plan, request_.precision, request_.batch_per_rank,
                             request_.optimizer_states};
  const Bytes capacity = request_.cluster.device.memory.value;
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
    return LeftOut{std::string(strategy.name), request_.wire, error.problem(),
                   fmt::format("--strategy {} asks for it", strategy.name)};
  } catch (const FollowingTakesTooMuch& error) {
    return LeftOut{std::string(strategy.name), request_.wire, error.problem(), error.remedy()};
  } catch (const TooManyMessages& error) {
    // The flow engine follows fewer messages than are prepared in time, and the step engine times
    // more of them.
    const bool is_bounded = request_.time_budget != TimeBudget::unlimited;
    return LeftOut{std::string(strategy.name), request_.wire, error.problem(),
                   is_bounded
                       ? fmt::format("--strategy {} --engine step asks for it", strategy.name)
                       : error.remedy()};
  }
}

}  // namespace paceline::simulator

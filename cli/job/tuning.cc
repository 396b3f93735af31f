// Tests: tests/cli/tune_test.py (end to end).
#include "cli/job/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/job/basis.h"
#include "cli/job/job_memory.h"
#include "cli/job/option_values.h"
#include "cli/job/shown_plan.h"
#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/base/to_size.h"
#include "models/collective/catalogue.h"
#include "models/plan/tuned.h"
#include "simulator/cost/nccl_model.h"
#include "simulator/export/ddp.h"
#include "simulator/export/horovod.h"
#include "simulator/planner/threshold_fields.h"
#include "simulator/prediction/prediction_json.h"

namespace paceline::job {
namespace {

void check(const Job& job) {
  if (job.networks.size() > 1)
    throw InputError({"--model"}, fmt::format("{} networks and one plan", job.networks.size()),
                     "give one --model");
  if (job.plan)
    throw InputError({"--plan"}, "tune looks for a plan",
                     "leave it out; paceline predict --plan times it");
  if (job.question.thresholds.through_host)
    throw InputError({"--host-copies"}, "a tuned plan does not go through the host",
                     "leave it out");
}

// Says which buckets have no other choices beside them because the time was over. The choices of the
// buckets are found in their order.
void note_unexplained(Tuning& tuning) {
  const std::size_t buckets = tuning.tuned.plan.buckets.size();
  const auto& choices = tuning.tuned.alternatives;
  std::size_t explained = std::min(buckets, choices.size());
  while (explained > 0 && choices[explained - 1].empty()) --explained;
  if (explained == buckets) return;
  tuning.cut_short.push_back(
      explained + 1 == buckets
          ? fmt::format("bucket {} was not explained: the time was over (--time-limit)", explained)
          : fmt::format("buckets {} to {} were not explained: the time was over (--time-limit)",
                        explained, buckets - 1));
}

bool is_driven_by_thresholds(const simulator::StrategyPrediction& row) {
  const models::Strategy& strategy = models::strategy(row.name);
  return may_run(row) && !strategy.other && strategy.fusion != models::Fusion::never &&
         !strategy.traits().all_at_once;
}

// All-reduces of which one search makes plans: a library, or schedules; empty: all schedules.
using Family = std::vector<std::string>;

std::vector<Family> families(const Job& job, const std::vector<std::string>& asked) {
  std::vector<Family> all;
  Family schedules;
  for (const std::string& name : asked) {
    if (models::library_named(name))
      all.push_back({name});
    else
      schedules.push_back(name);
  }
  if (asked.empty()) {
    for (const models::Library library : {models::Library::nccl, models::Library::open_mpi})
      if (is_timed(models::strategy(name(library)), job))
        all.push_back({std::string(name(library))});
  }
  if (asked.empty() || !schedules.empty()) all.push_back(std::move(schedules));
  return all;
}

bool is_of(const models::Plan& plan, const Family& family) {
  return std::all_of(plan.schedules.begin(), plan.schedules.end(), [&](const auto& one) {
    if (family.empty()) return one.has_steps();
    return std::find(family.begin(), family.end(), one.algorithm) != family.end();
  });
}

// The better of two plans, and what is known of all plans of both searches.
void join(simulator::TunedPlan& best, simulator::TunedPlan other) {
  if (best.plan.buckets.empty()) {
    best = std::move(other);
    return;
  }
  if (other.period < best.period) std::swap(best, other);
  if (best.is_optimal && !other.is_optimal && other.least_period < best.period) {
    best.is_optimal = false;
    best.why_not = other.why_not;
  }
  best.least_period = std::min(best.least_period, other.least_period);
  best.candidates += other.candidates;
  best.evaluated += other.evaluated;
  best.is_complete = best.is_complete && other.is_complete;
  best.left_out.insert(best.left_out.end(), other.left_out.begin(), other.left_out.end());
}

// The best plan of one wire type by search, each family of all-reduces for an equal share of the time.
simulator::TunedPlan search_plans(Tuning& tuning, std::size_t wire, const std::vector<Family>& all,
                                  const TuningObserver& observer) {
  const PredictionTable& table = tuning.table;
  const Job& job = table.job;
  simulator::PredictionRequest request = job.request(table.network, table.ranks, job.wires[wire]);
  request.time_budget = simulator::TimeBudget::unlimited;
  simulator::Predictor predictor(request);
  simulator::TunedPlan best;
  for (std::size_t i = 0; i < all.size(); ++i) {
    simulator::TuningRequest search;
    search.all_reduces = all[i];
    const double share = static_cast<double>(wire * all.size() + i + 1) /
                         static_cast<double>(job.wires.size() * all.size());
    if (observer.stop) search.stop = [&observer, share] { return observer.stop(share); };
    search.progress = observer.search;
    search.explain = observer.explain;
    search.stop_explaining = observer.stop_explaining;
    for (const simulator::StrategyPrediction& row : table.rows)
      if (row.plan.wire == request.wire && may_run(row) && is_of(row.plan, all[i]))
        search.seeds.push_back(row.plan);
    simulator::TunedPlan found = predictor.tune(search);
    // Buckets of a search may be larger than those of the rows, which fit.
    if (checks_memory(job) && !memory_need(job, table.network, found.plan).fits) continue;
    const auto library = models::library_of(all[i]);
    if (library && (!tuning.by_library || found.period < tuning.by_library->second))
      tuning.by_library = {*library, found.period};
    join(best, std::move(found));
  }
  return best;
}

void take_row(const simulator::StrategyPrediction& row, simulator::TunedPlan& tuned) {
  // Where no search found a plan, computation alone is the bound.
  const Seconds bound = tuned.plan.buckets.empty() ? row.spent.compute : tuned.least_period;
  tuned.plan = row.plan;
  tuned.period = row.iteration.value;
  tuned.least_period = std::min(bound, tuned.period);
  tuned.is_optimal = false;
  tuned.why_not = fmt::format("no search is made among plans of {}", row.name);
  tuned.alternatives.clear();
}

// The defaults of Horovod and of PyTorch DDP that are in the table.
std::vector<RuntimeDefaults> runtime_defaults(const Tuning& tuning,
                                              const simulator::SampledIteration& of_plan) {
  // DDP's process group is NCCL's where there are GPUs, and Gloo's elsewhere.
  constexpr std::pair<const char*, const char*> defaults[] = {
      {"Horovod", "horovod"}, {"PyTorch DDP", "ddp"}, {"PyTorch DDP", "ddp-ring"}};
  std::vector<RuntimeDefaults> found;
  for (const auto& [runtime, strategy] : defaults) {
    if (!found.empty() && found.back().runtime == runtime) continue;
    const auto& rows = tuning.table.rows;
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& candidate) {
      return candidate.name == strategy && candidate.plan.wire == tuning.tuned.plan.wire;
    });
    if (row != rows.end())
      found.push_back({runtime, to_size(row - rows.begin()),
                       simulator::paired_gain(of_plan, simulator::sampled(*row))});
  }
  return found;
}

constexpr std::pair<Runtime, std::string_view> runtimes_by_name[] = {
    {Runtime::ddp, "ddp"},
    {Runtime::horovod, "horovod"},
    {Runtime::nccl, "nccl"},
    {Runtime::paceline, "paceline"}};

// The settings of the runtime that come nearest to the plan. A runtime without settings takes the plan
// itself, whose gain is known.
Advice advice_for(Runtime runtime, const Tuning& tuning, const RuntimeDefaults& defaults,
                  const simulator::PredictionRequest& request) {
  const models::Plan& plan = tuning.tuned.plan;
  if (runtime == Runtime::ddp) {
    simulator::DdpSettings settings = simulator::ddp_settings(plan, request);
    const std::string argument = simulator::argument(settings.best);
    return {runtime, argument.empty() ? "its defaults" : argument, std::move(settings.plan),
            settings.best.iteration};
  }
  if (runtime == Runtime::horovod) {
    simulator::HorovodSettings settings = simulator::horovod_settings(plan, request);
    return {runtime, fmt::format("{}", fmt::join(simulator::variables(settings), " ")),
            std::move(settings.plan), settings.iteration};
  }
  return {runtime, "", plan, tuning.tuned.period, defaults.gain};
}

// Finds what each runtime can be told, and compares it with the defaults.
void try_runtimes(Tuning& tuning) {
  const RuntimeDefaults* const defaults = tuning.yardstick();
  if (defaults == nullptr) return;
  const simulator::StrategyPrediction& row = tuning.table.rows[defaults->row];
  const simulator::SampledIteration by_default = simulator::sampled(row);
  const simulator::PredictionRequest request =
      tuning.table.job.request(tuning.table.network, tuning.table.ranks, row.plan.wire);
  simulator::Predictor predictor(request);
  for (const Runtime runtime : tuning.runtimes) {
    Advice advice = advice_for(runtime, tuning, *defaults, request);
    if (!advice.setting.empty())
      advice.gain = simulator::paired_gain(predictor.sampled(advice.plan), by_default);
    tuning.tried.push_back(std::move(advice));
  }
}

// Adds what the plan does, its interval, and its gain over defaults. `taken` is the row that the plan is
// of, timed as that was; null where a search found it.
void describe(Tuning& tuning, const simulator::StrategyPrediction* taken) {
  const PredictionTable& table = tuning.table;
  const models::Plan& plan = tuning.tuned.plan;
  simulator::PredictionRequest request = table.job.request(table.network, table.ranks, plan.wire);
  if (taken == nullptr) request.time_budget = simulator::TimeBudget::unlimited;
  simulator::Predictor predictor(request);
  const simulator::StrategyRun run = predictor.run(plan);
  tuning.travel = plan_travel(run.plan, run.dag, run.steady);
  const simulator::SampledIteration sampled =
      taken != nullptr ? simulator::sampled(*taken) : predictor.sampled(plan);
  const simulator::IntervalFactors interval = sampled.spread.interval();
  tuning.iteration = {sampled.period, interval.low * sampled.period, interval.high * sampled.period,
                      Provenance::predicted, run.compute_source};
  tuning.defaults = runtime_defaults(tuning, sampled);
}

}  // namespace

const RuntimeDefaults* Tuning::kept() const {
  if (!tried.empty()) return advice() == nullptr ? yardstick() : nullptr;
  const RuntimeDefaults* best = nullptr;
  for (const RuntimeDefaults& one : defaults)
    if (best == nullptr || one.gain.value < best->gain.value) best = &one;
  if (best == nullptr) return nullptr;
  const bool is_kept = best->gain.includes_none() || best->gain.value < least_worthwhile_gain;
  return is_kept ? best : nullptr;
}

const RuntimeDefaults* Tuning::yardstick() const {
  if (std::ranges::count(runtimes, Runtime::paceline) > 0) return nullptr;
  const bool is_horovods = runtimes.front() == Runtime::horovod;
  const auto found = std::ranges::find_if(defaults, [&](const RuntimeDefaults& one) {
    return (one.runtime == "Horovod") == is_horovods;
  });
  return found == defaults.end() ? nullptr : &*found;
}

const Advice* Tuning::advice() const {
  const Advice* best = nullptr;
  for (const Advice& one : tried) {
    const double more = one.gain.value - (best == nullptr ? 0 : best->gain.value);
    if (!one.gain.includes_none() && more >= least_worthwhile_gain) best = &one;
  }
  return best;
}

const models::Plan& Tuning::chosen() const {
  if (const Advice* const what = advice()) return what->plan;
  return tried.empty() ? tuned.plan : table.rows[yardstick()->row].plan;
}

void compare_with_others(Job& job) {
  const bool has_nccl = simulator::sums_by_nccl(job.cluster.device);
  for (const models::Strategy& strategy : models::other_system_catalogue()) {
    const bool runs = strategy.library() ? has_nccl : strategy.traits().by_kernels;
    if (runs && !job.names_strategies &&
        std::find(job.strategies.begin(), job.strategies.end(), &strategy) == job.strategies.end())
      job.strategies.push_back(&strategy);
  }
  if (!job.plan) check_taken(job.question.thresholds, job.strategies);
}

bool may_run(const simulator::StrategyPrediction& row) {
  const models::Strategy& strategy = models::strategy(row.name);
  return strategy.is_runnable() && !row.plan.is_of_other_system() && row.not_followed == 0;
}

bool takes_only(const models::Plan& plan, const std::vector<std::string>& all_reduces) {
  return all_reduces.empty() || is_of(plan, all_reduces);
}

std::vector<std::string> family_of(const models::Plan& plan,
                                   const std::vector<std::string>& all_reduces) {
  if (const auto* library = plan.uses<models::Library>()) return {std::string(name(*library))};
  Family schedules = all_reduces;
  std::erase_if(schedules, [](const std::string& name) { return models::library_named(name); });
  return schedules;
}

void leave_out_untimed(Job& job) {
  job.time_budget = simulator::TimeBudget::bounded_by_any_engine;
  if (job.question.engine != simulator::EngineKind::step || job.names_strategies) return;
  std::erase_if(job.strategies,
                [](const models::Strategy* strategy) { return strategy->traits().all_at_once; });
}

Seconds parse_time_limit(const std::string& text) {
  return parsing_option("--time-limit", [&] { return parse_seconds(text); });
}

std::string_view name(Runtime runtime) {
  return name_in(runtimes_by_name, runtime);
}

namespace {

std::vector<std::string> parse_all_reduces(const std::string& text, const Job& job) {
  if (text.empty()) return {};
  std::vector<std::string> known;
  for (const models::CollectiveAlgorithm& entry : models::all_reduce_catalogue())
    known.emplace_back(entry.name);
  for (const models::Library library : {models::Library::nccl, models::Library::open_mpi})
    if (is_timed(models::strategy(name(library)), job)) known.emplace_back(name(library));
  return parsing_option("--all-reduce", [&] {
    std::vector<std::string> names = comma_list(text);
    for (const std::string& name : names)
      if (std::find(known.begin(), known.end(), name) == known.end())
        throw unknown_name("all-reduce", name, known);
    return names;
  });
}

// Other runtimes than ours call one library for all buckets. Horovod's is NCCL, which is timed by rings on
// GPUs before 2020.
void take_library(const Job& job, TuningTarget& target) {
  const bool is_ours = std::ranges::count(target.runtimes, Runtime::paceline) > 0;
  if (is_ours || !target.all_reduces.empty()) return;
  const bool has_nccl = simulator::sums_by_nccl(job.cluster.device);
  if (!has_nccl && std::ranges::count(target.runtimes, Runtime::nccl) > 0)
    throw InputError({"--runtime"}, "NCCL does not run on " + job.cluster.device.name,
                     "choose ddp, horovod or paceline");
  if (has_nccl) target.all_reduces.emplace_back("nccl");
  if (!has_nccl || std::ranges::count(target.runtimes, Runtime::horovod) > 0)
    target.all_reduces.emplace_back("ring");
}

}  // namespace

TuningTarget parse_target(const TuningOptions& options, const Job& job, bool is_robust) {
  TuningTarget target{.runtimes = {}, .all_reduces = parse_all_reduces(options.all_reduces, job)};
  const bool needs_ours = !options.all_reduces.empty() || is_robust || job.names_strategies;
  parsing_option("--runtime", [&] {
    if (options.runtimes.empty()) return;
    for (const std::string& word : comma_list(options.runtimes)) {
      const Runtime runtime = value_named(runtimes_by_name, "runtime", word);
      if (needs_ours && runtime != Runtime::paceline)
        throw InputError(fmt::format("{} takes no all-reduces, strategies or robust plans", word),
                         "leave --all-reduce, --strategy and --robust out, or write paceline");
      target.runtimes.push_back(runtime);
    }
  });
  const bool is_usual = simulator::sums_by_nccl(job.cluster.device) &&
                        job.question.thresholds.streams.value_or(1) == 1 && !job.question.overlap;
  if (target.runtimes.empty())
    target.runtimes = needs_ours || !is_usual ? std::vector{Runtime::paceline}
                                              : std::vector{Runtime::ddp, Runtime::nccl};
  take_library(job, target);
  return target;
}

TuningTimes tuning_times(Seconds limit, bool explains, bool samples) {
  const int parts = 1 + (explains ? 1 : 0) + (samples ? 1 : 0);
  const Seconds part = limit / static_cast<double>(parts);
  return {part, explains ? 2 * part : part, limit};
}

Tuning tune_job(const Job& job, int ranks, const TuningTarget& target,
                const TuningObserver& observer) {
  check(job);
  const LoadedNetwork& network = job.networks.front();
  const std::vector<std::string>& all_reduces = target.all_reduces;
  Tuning tuning{.table = predict_table(job, network, ranks, observer.table), .tuned = {}};
  tuning.runtimes = target.runtimes;
  PredictionTable& table = tuning.table;
  const std::vector<Family> all = families(job, all_reduces);
  for (std::size_t wire = 0; wire < job.wires.size(); ++wire) {
    simulator::TunedPlan found = search_plans(tuning, wire, all, observer);
    const bool is_better = tuning.tuned.plan.buckets.empty() || found.period < tuning.tuned.period;
    if (!found.plan.buckets.empty() && is_better) tuning.tuned = std::move(found);
  }
  std::erase_if(table.rows, [&](const auto& row) { return !takes_only(row.plan, all_reduces); });
  const simulator::StrategyPrediction* taken = nullptr;
  for (const simulator::StrategyPrediction& row : table.rows) {
    if (!tuning.tuned.plan.buckets.empty() && row.iteration.value >= tuning.tuned.period) continue;
    taken = &row;
    take_row(row, tuning.tuned);
  }
  if (tuning.tuned.plan.buckets.empty())
    throw InputError({"--all-reduce"}, "no plan of these all-reduces fits the device's memory",
                     "name others, a smaller --batch, or --ignore-memory; paceline predict has "
                     "strategies that shard what a rank keeps");
  if (tuning.by_library && tuning.by_library->second <= tuning.tuned.period)
    tuning.by_library.reset();
  describe(tuning, taken);
  try_runtimes(tuning);
  tuning.is_explained = observer.explain;
  if (!tuning.tuned.is_complete)
    tuning.cut_short.emplace_back("the search was stopped: more time may find a better plan");
  const bool is_late = observer.stop_explaining && observer.stop_explaining();
  if (observer.explain && is_late) note_unexplained(tuning);
  if (is_late)
    tuning.cut_short.emplace_back(
        "what would help most was not tried: the time was over (--time-limit)");
  if (job.cluster.platform == nullptr && !is_late) {
    constexpr double twice[] = {2};
    const models::Plan& plan = tuning.tuned.plan;
    simulator::PredictionRequest request = job.request(network, ranks, plan.wire);
    request.time_budget = simulator::TimeBudget::unlimited;
    tuning.better =
        better_parts(request, models::strategy(plan.strategy), plan, /*is_fixed=*/true, twice);
  }
  for (std::size_t i = 0; i < tuning.table.rows.size(); ++i) {
    const simulator::StrategyPrediction& row = tuning.table.rows[i];
    if (!is_driven_by_thresholds(row) || !takes_only(row.plan, all_reduces)) continue;
    if (!tuning.by_thresholds ||
        row.iteration.value < tuning.table.rows[*tuning.by_thresholds].iteration.value)
      tuning.by_thresholds = i;
  }
  return tuning;
}

}  // namespace paceline::job

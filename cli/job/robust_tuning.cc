// Tests: tests/cli/tune_test.py (end to end).
#include "cli/job/robust_tuning.h"

#include <fmt/core.h>

#include <cstdint>
#include <utility>
#include <variant>

#include "cli/job/option_values.h"
#include "cli/job/plan_file.h"
#include "models/base/error.h"
#include "models/base/parse_units.h"
#include "models/plan/tuned.h"
#include "simulator/cost/nccl_model.h"

namespace paceline::job {
namespace {

constexpr int tuned_states = 32;

// PyTorch DDP's process group is NCCL's where there are GPUs, and Gloo's elsewhere.
std::string default_runtime(const Job& job) {
  return simulator::sums_by_nccl(job.cluster.device) ? "ddp" : "ddp-ring";
}

RuntimeDefault read_default(const std::string& text) {
  return parsing_option("--default", [&]() -> RuntimeDefault {
    if (text.ends_with(".json")) return {nullptr, read_plan(text), text};
    const models::Strategy& strategy = models::strategy(text);
    if (models::is_tuned(strategy))
      throw InputError("tuned is no runtime's default", "name a strategy, such as ddp, or a plan");
    return {&strategy, std::nullopt, std::string(strategy.name)};
  });
}

simulator::RobustCandidate default_of(const Tuning& tuning, const RuntimeDefault& runtime,
                                      const simulator::PredictionRequest& of_job,
                                      simulator::Predictor& predictor) {
  const models::WireType wire = tuning.tuned.plan.wire;
  const models::Strategy& strategy =
      runtime.plan ? models::strategy(runtime.plan->plan.strategy) : *runtime.strategy;
  if (of_job.stragglers && !strategy.traits().may_straggle)
    throw InputError({"--default"},
                     fmt::format("no stragglers are simulated with {}", strategy.name),
                     "leave out --spread and --slow-rank, or choose another strategy");
  if (runtime.plan) {
    models::check_plan(*runtime.plan, runtime.name, tuning.table.network.work, tuning.table.ranks);
    const models::Plan& plan = runtime.plan->plan;
    if (plan.wire != wire)
      throw InputError({"--default"},
                       fmt::format("{} has {} on the wire, and the tuned plan {}", runtime.name,
                                   name(plan.wire), name(wire)),
                       "give both one --wire");
    return {runtime.name, plan, predictor.sampled(plan)};
  }
  for (const simulator::StrategyPrediction& row : tuning.table.rows)
    if (row.name == runtime.name && row.plan.wire == wire)
      return {row.name, row.plan,
              of_job.stragglers ? predictor.sampled(row.plan) : simulator::sampled(row)};
  simulator::PredictionRequest request = of_job;
  request.time_budget = tuning.table.job.time_budget;
  request.stragglers = {};
  request.thresholds = {};
  // How many buckets travel at once is the process group's, whoever makes them.
  request.thresholds.streams = of_job.thresholds.streams;
  simulator::Predictor others(request);
  const auto row = others.row(*runtime.strategy);
  if (const auto* left_out = std::get_if<simulator::LeftOut>(&row))
    throw InputError({"--default"}, left_out->why, left_out->remedy);
  const auto& prediction = std::get<simulator::StrategyPrediction>(row);
  return {prediction.name, prediction.plan,
          of_job.stragglers ? predictor.sampled(prediction.plan) : simulator::sampled(prediction)};
}

const Document<simulator::RobustCandidate>& candidate_document() {
  using Candidate = simulator::RobustCandidate;
  static const auto document =
      Document<Candidate>()
          .add("name", &Candidate::name)
          .add("strategy", [](const Candidate& candidate) { return candidate.plan.strategy; })
          .add(
              "buckets", [](const Candidate& candidate) { return candidate.plan.buckets.size(); },
              at_least(1))
          .add(
              "iteration_s", [](const Candidate& candidate) { return candidate.time.period; },
              positive())
          .add(
              "p95_s", [](const Candidate& candidate) { return p95(candidate.time); }, positive())
          .add(
              "unhidden", [](const Candidate& candidate) { return candidate.time.spread.unhidden; },
              not_negative());
  return document;
}

const Document<simulator::PairedGain>& gain_document() {
  static const auto document = Document<simulator::PairedGain>()
                                   .add("value", &simulator::PairedGain::value)
                                   .add("low", &simulator::PairedGain::low)
                                   .add("high", &simulator::PairedGain::high);
  return document;
}

const Document<simulator::MonteCarloRequest>& stragglers_document() {
  using Request = simulator::MonteCarloRequest;
  static const auto document =
      Document<Request>()
          .add("spread", [](const Request& request) { return request.stragglers.spread.text; })
          .add("slow_ranks", [](const Request& request) { return request.stragglers.slow_ranks; });
  return document;
}

}  // namespace

std::optional<AskedRobust> take_robust(const RobustOptions& options, Job& job, int ranks) {
  simulator::StragglerTexts differ = options.ranks;
  if (!options.robust) {
    for (const auto& [option, text] :
         {std::pair{"--default", options.runtime}, std::pair{"--seed", differ.seed},
          std::pair{"--spread", differ.spread}, std::pair{"--slow-rank", differ.slow_ranks}})
      if (!text.empty())
        throw InputError({option}, "nothing is sampled", "give --robust, too, or leave it out");
    return std::nullopt;
  }
  if (!differ.seed.empty()) {
    constexpr std::int64_t most_seed = std::int64_t{1} << 53;  // that JSON holds exactly
    job.sampling_seed = static_cast<std::uint64_t>(
        parsing_option("--seed", [&] { return parse_count(differ.seed, 0, most_seed); }));
  }
  if (differ.spread.empty() && differ.slow_ranks.empty()) differ.seed.clear();
  return AskedRobust{read_default(options.runtime.empty() ? default_runtime(job) : options.runtime),
                     load_stragglers(differ, ranks)};
}

RobustTuning robust_tuning(const Tuning& tuning, const AskedRobust& asked,
                           const std::vector<std::string>& all_reduces,
                           const std::function<bool()>& stop) {
  const models::Plan& best = tuning.tuned.plan;
  simulator::PredictionRequest request =
      tuning.table.job.request(tuning.table.network, tuning.table.ranks, best.wire);
  request.time_budget = simulator::TimeBudget::unlimited;
  request.stragglers = asked.stragglers;
  simulator::Predictor predictor(request);
  RobustTuning robust;
  robust.stragglers = asked.stragglers;
  robust.candidates.push_back({best.strategy, best, predictor.sampled(best)});
  robust.candidates.push_back(default_of(tuning, asked.runtime, request, predictor));
  const auto add = [&](std::string name, const models::Plan& plan) {
    robust.candidates.push_back({std::move(name), plan, predictor.sampled(plan)});
  };
  for (const simulator::StrategyPrediction& row : tuning.table.rows) {
    if (row.plan.wire != best.wire || !may_run(row) || !takes_only(row.plan, all_reduces)) continue;
    if (asked.stragglers)
      add(row.name, row.plan);
    else
      robust.candidates.push_back({row.name, row.plan, simulator::sampled(row)});
  }
  const bool is_on_servers = models::strategy(best.strategy).traits().all_at_once;
  const std::vector<std::string> family = family_of(best, all_reduces);
  if (!is_on_servers && !best.is_of_other_system()) {
    int number = 0;
    for (const models::Plan& plan : predictor.plans_of_worlds(best, tuned_states, family, stop)) {
      if (stop()) break;
      add(fmt::format("tuned for state {}", ++number), plan);
    }
  }
  if (request.thresholds.streams.value_or(1) > 1) {
    for (const auto& [unhidden, name] : {std::pair{0.5, "tuned, half of the latency hidden"},
                                         std::pair{1.0, "tuned, no latency hidden"}}) {
      if (stop()) break;
      add(name,
          predictor
              .tune({.seeds = {best}, .all_reduces = family, .unhidden = unhidden, .stop = stop})
              .plan);
    }
  }
  robust.is_complete = !stop();
  // The default is compared with, and is none of the plans to choose from.
  std::vector<std::size_t> own;
  std::vector<std::size_t> better;  // for certain
  for (std::size_t i = 0; i < robust.candidates.size(); ++i) {
    if (i == 1) continue;
    own.push_back(i);
    if (!robust.gain_of(i).includes_none()) better.push_back(i);
  }
  const auto most_robust = [&](const std::vector<std::size_t>& among) {
    std::vector<simulator::RobustCandidate> plans;
    for (const std::size_t i : among) plans.push_back(robust.candidates[i]);
    return among[simulator::most_robust(plans)];
  };
  robust.robust = most_robust(own);
  if (!better.empty() && robust.gain_of(robust.robust).includes_none())
    robust.robust = most_robust(better);
  robust.gain = robust.gain_of(robust.robust);
  return robust;
}

const Document<RobustTuning>& robust_document() {
  using Robust = RobustTuning;
  static const auto spread = [](const Robust& robust) -> const simulator::IterationSpread& {
    return robust.candidates[robust.robust].time.spread;
  };
  static const auto document =
      Document<Robust>()
          .add("seed", [](const Robust& robust) { return spread(robust).seed; })
          .add("samples", [](const Robust& robust) { return spread(robust).factors.size(); })
          .add(
              "plans", [](const Robust& robust) { return robust.candidates.size(); }, at_least(1))
          .add("complete", &Robust::is_complete)
          .add("best", &Robust::best, candidate_document())
          .add(
              "robust",
              [](const Robust& robust) -> const simulator::RobustCandidate& {
                return robust.candidates[robust.robust];
              },
              candidate_document())
          .add("default", &Robust::runtimes, candidate_document())
          .add("gain", &Robust::gain, gain_document())
          .add("keeps_default", &Robust::keeps_default)
          .add("stragglers", &Robust::stragglers, stragglers_document());
  return document;
}

}  // namespace paceline::job

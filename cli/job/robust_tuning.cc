// Tests: tests/cli/tune_test.py (end to end).
#include "cli/job/robust_tuning.h"

#include <fmt/core.h>

#include <cstdint>
#include <utility>
#include <variant>

#include "cli/job/option_values.h"
#include "models/base/error.h"
#include "models/base/parse_units.h"
#include "models/plan/tuned.h"
#include "simulator/cost/nccl_model.h"

namespace paceline::job {
namespace {

constexpr int tuned_states = 32;

// PyTorch DDP's process group is NCCL's where there are GPUs, and Gloo's elsewhere.
std::string default_runtime(const Job& job) {
  return simulator::is_gpu(job.cluster.device) ? "ddp" : "ddp-ring";
}

simulator::RobustCandidate default_of(const Tuning& tuning, const models::Strategy& runtime) {
  for (const simulator::StrategyPrediction& row : tuning.table.rows)
    if (row.name == runtime.name && row.plan.wire == tuning.tuned.plan.wire)
      return {row.name, row.plan, simulator::sampled(row)};
  const Job& job = tuning.table.job;
  simulator::PredictionRequest request =
      job.request(tuning.table.network, tuning.table.ranks, tuning.tuned.plan.wire);
  request.thresholds = {};
  simulator::Predictor predictor(request);
  const auto row = predictor.row(runtime);
  if (const auto* left_out = std::get_if<simulator::LeftOut>(&row))
    throw InputError({"--default"}, left_out->why, left_out->remedy);
  const auto& prediction = std::get<simulator::StrategyPrediction>(row);
  return {prediction.name, prediction.plan, simulator::sampled(prediction)};
}

Json candidate_json(const simulator::RobustCandidate& candidate) {
  return {{"name", candidate.name},
          {"strategy", candidate.plan.strategy},
          {"buckets", candidate.plan.buckets.size()},
          {"iteration_s", candidate.time.period.value()},
          {"p95_s", p95(candidate.time).value()}};
}

}  // namespace

const models::Strategy* take_robust(const RobustOptions& options, Job& job) {
  if (!options.robust) {
    for (const auto& [option, text] :
         {std::pair{"--default", options.runtime}, std::pair{"--seed", options.seed}})
      if (!text.empty())
        throw InputError({option}, "nothing is sampled", "give --robust, too, or leave it out");
    return nullptr;
  }
  if (!options.seed.empty()) {
    constexpr std::int64_t most_seed = std::int64_t{1} << 53;  // that JSON holds exactly
    job.sampling_seed = static_cast<std::uint64_t>(
        parsing_option("--seed", [&] { return parse_count(options.seed, 0, most_seed); }));
  }
  return &parsing_option("--default", [&]() -> const models::Strategy& {
    const models::Strategy& runtime =
        models::strategy(options.runtime.empty() ? default_runtime(job) : options.runtime);
    if (models::is_tuned(runtime))
      throw InputError("tuned is no runtime's default", "name a strategy, such as ddp");
    return runtime;
  });
}

RobustTuning robust_tuning(const Tuning& tuning, const models::Strategy& runtime,
                           const std::vector<std::string>& all_reduces,
                           const std::function<bool()>& stop) {
  const models::Plan& best = tuning.tuned.plan;
  simulator::PredictionRequest request =
      tuning.table.job.request(tuning.table.network, tuning.table.ranks, best.wire);
  request.haste = simulator::Haste::none;
  simulator::Predictor predictor(request);
  RobustTuning robust;
  robust.candidates.push_back({best.strategy, best, predictor.sampled(best)});
  robust.candidates.push_back(default_of(tuning, runtime));
  for (const simulator::StrategyPrediction& row : tuning.table.rows)
    if (row.plan.wire == best.wire && may_run(row) && takes_only(row.plan, all_reduces))
      robust.candidates.push_back({row.name, row.plan, simulator::sampled(row)});
  if (best.streams == 1 && !best.is_of_other_system()) {
    int number = 0;
    for (models::Plan& plan : predictor.plans_of_worlds(best, tuned_states, all_reduces, stop)) {
      if (stop()) break;
      simulator::SampledIteration time = predictor.sampled(plan);
      robust.candidates.push_back(
          {fmt::format("tuned for state {}", ++number), std::move(plan), std::move(time)});
    }
  }
  robust.is_complete = !stop();
  // The default is compared with, and is none of the plans to choose from.
  std::vector<simulator::RobustCandidate> own = robust.candidates;
  own.erase(own.begin() + 1);
  const std::size_t chosen = simulator::most_robust(own);
  robust.robust = chosen == 0 ? 0 : chosen + 1;
  robust.gain = paired_gain(robust.candidates[robust.robust].time, robust.runtimes().time);
  return robust;
}

Json to_json(const RobustTuning& robust) {
  const simulator::RobustCandidate& chosen = robust.candidates[robust.robust];
  return {{"seed", chosen.time.spread.seed},
          {"samples", chosen.time.spread.factors.size()},
          {"plans", robust.candidates.size()},
          {"complete", robust.is_complete},
          {"best", candidate_json(robust.best())},
          {"robust", candidate_json(chosen)},
          {"default", candidate_json(robust.runtimes())},
          {"gain",
           {{"value", robust.gain.value}, {"low", robust.gain.low}, {"high", robust.gain.high}}},
          {"keeps_default", robust.keeps_default()}};
}

}  // namespace paceline::job

// Tests: tests/cli/replay_test.py (end to end).
#include "cli/job/replay.h"

#include <functional>
#include <utility>

#include "calibration/fit/statistics.h"
#include "cli/job/prediction_json.h"
#include "runtime/channel/messages.h"
#include "runtime/replay/script.h"
#include "simulator/cost/compute_time.h"
#include "simulator/prediction/prediction_json.h"

namespace paceline::job {
namespace {

// The plans of the predicted rows, with the compute times that the replay sleeps.
runtime::ReplayScript script_of(const Job& job, const PredictionTable& table) {
  runtime::ReplayScript script;
  for (const simulator::StrategyPrediction& row : table.rows) script.plans.push_back(row.plan);
  const simulator::ComputeTimes compute = compute_times(
      {table.network.work, job.cluster.device, job.profile ? &*job.profile : nullptr,
       job.question.precision, job.question.batch_per_rank, 1, nullptr, job.question.optimizer},
      simulator::Bound::stated);
  for (const simulator::LayerTime& layer : compute.layers)
    script.layers.push_back({layer.forward, layer.backward});
  script.update = compute.update;
  return script;
}

// A plan that ran, beside its prediction.
struct RunLine {
  const ReplayRun& run;
  const simulator::StrategyPrediction& predicted;

  [[nodiscard]] Seconds measured() const {
    return calibration::typical_iteration(run.outcome.iterations);
  }
};

const Document<RunLine>& measured_document() {
  using Line = RunLine;
  static const auto document =
      Document<Line>()
          .add_constant("provenance", "measured")
          .add("iteration_s", &Line::measured, positive())
          .add(
              "iterations_s", [](const Line& line) { return line.run.outcome.iterations; },
              list_of(not_negative(), 1))
          .add("exposed_communication_s",
               [](const Line& line) { return calibration::median(line.run.outcome.exposed); });
  return document;
}

const Document<RunLine>& run_document() {
  using Line = RunLine;
  static const auto document =
      Document<Line>()
          .add("name", [](const Line& line) { return line.run.plan.strategy; })
          .add("wire_type", [](const Line& line) { return line.run.plan.wire; })
          .add(
              "buckets", [](const Line& line) { return line.run.plan.buckets.size(); }, at_least(1))
          .add("measured", std::identity(), measured_document())
          .add(
              "predicted",
              [](const Line& line) -> const simulator::StrategyPrediction& {
                return line.predicted;
              },
              simulator::prediction_document())
          .add("relative_error", [](const Line& line) {
            return line.predicted.iteration.value / line.measured() - 1;
          });
  return document;
}

std::vector<RunLine> lines_of(const ReplayResult& result) {
  std::vector<RunLine> lines;
  for (std::size_t i = 0; i < result.runs.size(); ++i)
    lines.push_back({result.runs[i], result.table.rows[i]});
  return lines;
}

}  // namespace

std::vector<ReplayRun> replay_plans(const Job& job, const runtime::Endpoint& endpoint,
                                    const PredictionTable* table, const ReplaySettings& settings) {
  runtime::Transport& transport = endpoint.transport;
  const models::NetworkWork& network = job.networks.front().work;
  const std::string text =
      table != nullptr ? runtime::to_json(script_of(job, *table), network) : "";
  runtime::ReplayScript script = runtime::parse_replay_script(
      runtime::broadcast_text(endpoint.channel, text), network, transport.ranks());
  for (runtime::LayerDuration& layer : script.layers) {
    layer.forward *= settings.slowness;
    layer.backward *= settings.slowness;
  }
  script.update *= settings.slowness;
  std::vector<ReplayRun> runs;
  for (const models::Plan& plan : script.plans) {
    if (table != nullptr && settings.begin) settings.begin(runs.size());
    // A rank updates its own shards.
    const auto* const use = plan.uses<models::ShardUse>();
    const int shards = use != nullptr ? use->shards : 1;
    runtime::ReplayOutcome outcome = replay(transport, {.network = network,
                                                        .plan = plan,
                                                        .layers = script.layers,
                                                        .update = script.update / shards,
                                                        .warm_up = settings.warm_up,
                                                        .iterations = settings.iterations,
                                                        .recorder = settings.recorder});
    runs.push_back({plan, std::move(outcome)});
  }
  return runs;
}

const Document<ReplayResult>& replay_document() {
  using Result = ReplayResult;
  static const auto document =
      Document<Result>(
          "paceline.replay/1",
          "paceline replay --json: plans that ran with synthetic compute, beside their "
          "prediction.")
          .add("model", [](const Result& of) { return of.table.network.work.name; })
          .add("cluster", [](const Result& of) { return of.table.job.cluster.name; })
          .add(
              "ranks", [](const Result& of) { return of.table.ranks; }, at_least(1))
          .add("transport", &Result::transport)
          .add(
              "batch_per_rank",
              [](const Result& of) { return of.table.job.question.batch_per_rank; }, at_least(1))
          .add("precision", [](const Result& of) { return of.table.job.question.precision; })
          .include([](const Result& of) -> const Job& { return of.table.job; }, setting_document())
          .add("strategies", lines_of, run_document(), 1)
          .add("warnings", [](const Result& of) { return of.table.warnings; });
  return document;
}

}  // namespace paceline::job

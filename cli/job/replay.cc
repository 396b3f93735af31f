// Tests: tests/cli/replay_test.py (end to end).
#include "cli/job/replay.h"

#include <utility>

#include "calibration/fit/statistics.h"
#include "models/base/json.h"
#include "runtime/channel/messages.h"
#include "runtime/replay/script.h"
#include "simulator/cost/compute_time.h"
#include "simulator/iteration/prediction_json.h"

namespace paceline::job {
namespace {

// The plans of the predicted rows, with the compute times that the replay sleeps.
runtime::ReplayScript script_of(const Job& job, const PredictionTable& table) {
  runtime::ReplayScript script;
  for (const simulator::StrategyPrediction& row : table.rows) script.plans.push_back(row.plan);
  const simulator::ComputeTimes compute =
      compute_times({table.network.work, job.cluster.device, job.profile ? &*job.profile : nullptr,
                     job.question.precision, job.question.batch_per_rank},
                    simulator::Reading::stated);
  for (const simulator::LayerTime& layer : compute.layers)
    script.layers.push_back({layer.forward, layer.backward});
  script.update = compute.update;
  return script;
}

Json seconds_json(const std::vector<Seconds>& times) {
  Json json = Json::array();
  for (const Seconds time : times) json.push_back(time.value());
  return json;
}

Json run_json(const ReplayRun& run, const simulator::StrategyPrediction& predicted) {
  const Seconds measured = calibration::typical_iteration(run.outcome.iterations);
  return {{"name", run.plan.strategy},
          {"wire_type", name(run.plan.wire)},
          {"buckets", run.plan.buckets.size()},
          {"measured",
           {{"provenance", "measured"},
            {"iteration_s", measured.value()},
            {"iterations_s", seconds_json(run.outcome.iterations)},
            {"exposed_communication_s", calibration::median(run.outcome.exposed).value()}}},
          {"predicted", json_of(predicted)},
          {"relative_error", predicted.iteration.value / measured - 1}};
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
    runtime::ReplayOutcome outcome = replay(transport, {.network = network,
                                                        .plan = plan,
                                                        .layers = script.layers,
                                                        .update = script.update,
                                                        .warm_up = settings.warm_up,
                                                        .iterations = settings.iterations,
                                                        .recorder = settings.recorder});
    runs.push_back({plan, std::move(outcome)});
  }
  return runs;
}

std::string replay_json(const PredictionTable& table, const std::vector<ReplayRun>& runs,
                        std::string_view transport) {
  const Job& job = table.job;
  Json json = {{"schema", "paceline.replay/1"},
               {"model", table.network.work.name},
               {"cluster", job.cluster.name},
               {"ranks", table.ranks},
               {"transport", transport},
               {"batch_per_rank", job.question.batch_per_rank},
               {"precision", name(job.question.precision)}};
  json.update(setting_json(job));
  json["strategies"] = Json::array();
  for (std::size_t i = 0; i < runs.size(); ++i)
    json["strategies"].push_back(run_json(runs[i], table.rows[i]));
  json["warnings"] = table.warnings;
  return json.indented();
}

}  // namespace paceline::job

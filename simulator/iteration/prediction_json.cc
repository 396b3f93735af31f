// Tests: tests/cli/predict_test.py, tests/golden.
#include "simulator/iteration/prediction_json.h"

#include <algorithm>
#include <cctype>

namespace paceline::simulator {
namespace {

Json thresholds_json(const models::Strategy& strategy, const StrategyPrediction& row) {
  const models::Thresholds& thresholds = *row.thresholds;
  Json json = Json::object();
  if (strategy.fusion != models::Fusion::never) json["theta_bytes"] = thresholds.fusion.value();
  if (strategy.hybrid() != nullptr) json["eta_bytes"] = thresholds.hybrid.value();
  if (strategy.takes_group()) json["group"] = thresholds.group_size;
  if (strategy.takes_segments()) json["segments"] = thresholds.segments;
  if (strategy.takes_rings() && thresholds.rings > 0) json["rings"] = thresholds.rings;
  if (strategy.on_servers() != nullptr) {
    json["servers"] = thresholds.servers;
    json["placement"] = name(thresholds.placement);
  }
  if (strategy.preconditions()) {
    json["factors_every"] = thresholds.factors_every;
    json["placement"] = name(thresholds.placement);
  }
  if (strategy.on_servers() == nullptr && thresholds.streams > 1)
    json["streams"] = thresholds.streams;
  const models::Dispatch& dispatch = thresholds.dispatch;
  if (dispatch.cycle > Seconds{0}) json["cycle_s"] = dispatch.cycle.value();
  if (dispatch.negotiation != models::Negotiation::none)
    json["negotiation"] = name(dispatch.negotiation);
  if (thresholds.partition > Bytes{0}) json["partition_bytes"] = thresholds.partition.value();
  if (dispatch.credit) json["credit_bytes"] = dispatch.credit->value();
  if (dispatch.through_host) json["host_copies"] = true;
  if (strategy.served() != nullptr) {
    json["servers"] = thresholds.servers;
    json["own_machines"] = thresholds.own_machines;
    json["transport"] = name(thresholds.transport);
  }
  if (!row.alike_groups.empty()) json["alike_groups"] = row.alike_groups;
  if (!row.alike_segments.empty()) json["alike_segments"] = row.alike_segments;
  return json;
}

// {"forward_s": ..., "all_reduce_s": ...}
Json critical_path_json(const StrategyPrediction& row) {
  Json json = Json::object();
  for (const PathShare& share : row.critical_path) {
    std::string key(name(share.kind));
    std::replace_if(
        key.begin(), key.end(), [](char c) { return c == '-' || c == ' '; }, '_');
    std::transform(key.begin(), key.end(), key.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    json[key + "_s"] = share.time.value();
  }
  return json;
}

Json collective_json(const PackedCollective& collective) {
  return {{"bytes", collective.bytes.value()},
          {"most_sent_bytes", collective.most_sent.value()},
          {"pack_s", collective.pack.value()},
          {"transfer_s", collective.transfer.value()},
          {"unpack_s", collective.unpack.value()}};
}

// The stages of K-FAC. Times are means over the iterations between two refreshes of the factors.
Json k_fac_json(const KfacTimes& times) {
  Seconds inverted;
  Seconds preconditioned;
  for (const OwnedLayer& layer : times.owned) {
    inverted += layer.invert;
    preconditioned += layer.precondition;
  }
  return {{"owners", times.owners},
          {"factors_s", times.factors_total().value()},
          {"invert_s", inverted.value()},
          {"precondition_s", preconditioned.value()},
          {"reduce_scatter_beside_backward", collective_json(times.inputs)},
          {"reduce_scatter", collective_json(times.reduced)},
          {"all_gather", collective_json(times.gathered)}};
}

Json memory_json(const DeviceMemory& memory) {
  Json json = {{"parameters_bytes", memory.parameters.value()},
               {"masters_bytes", memory.masters.value()},
               {"gradients_bytes", memory.gradients.value()},
               {"optimizer_bytes", memory.optimizer.value()},
               {"activations_bytes", memory.activations.value()},
               {"input_bytes", memory.input.value()},
               {"workspace_bytes", memory.workspace.value()},
               {"buffers_bytes", memory.buffers.value()}};
  if (memory.factors > Bytes{0}) json["factors_bytes"] = memory.factors.value();
  json["total_bytes"] = memory.total().value();
  return json;
}

void add_straggler_fields(Json& json, const StragglerPrediction& row) {
  const IterationSummary& iteration = row.iteration;
  json["iteration_mean_s"] = iteration.mean.value();
  json["iteration_stderr_s"] = iteration.standard_error.value();
  json["iteration_p50_s"] = iteration.p50.value.value();
  json["iteration_p50_low_s"] = iteration.p50.low.value();
  json["iteration_p50_high_s"] = iteration.p50.high.value();
  json["iteration_p99_s"] = iteration.p99.value.value();
  json["iteration_p99_low_s"] = iteration.p99.low.value();
  json["iteration_p99_high_s"] = iteration.p99.high.value();
  json["throughput_mean_per_s"] = row.throughput.value();
  json["counted_ranks"] = row.counted_ranks;
  json["efficiency_mean"] = row.efficiency;
}

}  // namespace

Json json_of(const StrategyPrediction& row) {
  Json json = {{"name", row.name},
               {"iteration_s", row.iteration.value.value()},
               {"iteration_low_s", row.iteration.low.value()},
               {"iteration_high_s", row.iteration.high.value()}};
  const Json others = {
      {"throughput_per_s", row.throughput.value()},
      {"efficiency", row.efficiency},
      {"efficiency_baseline_ranks", row.baseline_ranks},
      {"compute_s", row.spent.compute.value()},
      {"update_s", row.spent.update.value()},
      {"exposed_communication_s", row.spent.exposed_communication.value()},
      {"input_wait_s", row.spent.input_wait.value()},
      {"communication_s", row.spent.communication.value()},
      {"critical_path", critical_path_json(row)},
      {"buckets", row.plan.buckets.size()},
      {"wire_type", name(row.plan.wire)},
      {"overlap", name(row.plan.overlap)},
      {"thresholds",
       row.thresholds ? thresholds_json(models::strategy(row.name), row) : Json(nullptr)},
      {"memory", memory_json(row.memory)},
      {"fits_memory", row.fits},
      {"largest_batch_per_rank", row.largest_batch},
      {"steady", row.converged},
      {"provenance", "predicted"},
      {"timed_by", row.timed_by},
      {"messages_not_followed", row.not_followed},
      {"better_links_may_slow",
       row.better_links_may_slow.empty() ? Json(nullptr) : Json(row.better_links_may_slow)},
      {"compute_source", row.compute_source}};
  json.update(others);
  if (row.k_fac) json["k_fac"] = k_fac_json(*row.k_fac);
  if (row.stragglers) add_straggler_fields(json, *row.stragglers);
  return json;
}

}  // namespace paceline::simulator

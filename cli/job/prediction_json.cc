// The documents of docs/formats.md that hold predictions. Tests: tests/cli (end to end).
#include <map>
#include <optional>
#include <string>

#include "cli/job/basis.h"
#include "cli/job/prediction_table.h"
#include "models/cluster/cluster_figures.h"
#include "models/cluster/placement.h"
#include "simulator/iteration/prediction_json.h"
#include "simulator/planner/threshold_fields.h"

namespace paceline::job {
namespace {

Json straggler_json(const Job& job) {
  const simulator::MonteCarloRequest& request = *job.stragglers;
  const auto object = [](const std::map<int, double>& values) {
    Json json = Json::object();
    for (const auto& [index, value] : values) json[std::to_string(index)] = value;
    return json;
  };
  return {{"spread", request.stragglers.spread.text},
          {"slow_ranks", object(request.stragglers.slow_ranks)},
          {"slow_nodes", object(job.cluster.slow_nodes)},
          {"backup", request.stragglers.backup},
          {"monte_carlo_iterations", request.iterations},
          {"seed", request.seed}};
}

// The thresholds that the user gave; the others are chosen for each strategy.
Json given_thresholds(const simulator::ThresholdRequest& given) {
  Json json = Json::object();
  for (const simulator::ThresholdField* field : simulator::given_fields(given))
    json[std::string(field->key)] = field->value(given);
  return json;
}

// The thresholds that some of the strategies take and others do not.
Json partly_taken(const Job& job) {
  Json json = Json::array();
  for (const simulator::PartlyTaken& part :
       simulator::partly_taken(job.question.thresholds, job.strategies)) {
    Json names = Json::array();
    for (const std::string_view name : part.taken_by) names.push_back(std::string(name));
    json.push_back({{"option", part.field->option()}, {"taken_by", std::move(names)}});
  }
  return json;
}

Json rows_json(const PredictionTable& table) {
  Json rows = Json::array();
  for (const simulator::StrategyPrediction& row : table.rows) rows.push_back(json_of(row));
  return rows;
}

// The row with a star, and those that no prediction tells from it.
Json best_json(const PredictionTable& table) {
  const auto named = [&](std::size_t row) -> Json {
    return {{"name", table.rows[row].name}, {"wire_type", name(table.rows[row].plan.wire)}};
  };
  Json json = named(table.best());
  json["tied"] = Json::array();
  for (const std::size_t row : table.tied()) json["tied"].push_back(named(row));
  return json;
}

// A document without its rows: the job of a table and how it is predicted. One that is of several
// numbers of ranks has none of its own.
Json document_of(const char* schema, const PredictionTable& table, std::optional<int> ranks) {
  const Job& job = table.job;
  Json json = {{"schema", schema},
               {"model", table.network.work.name},
               {"cluster", job.cluster.name},
               {"device", job.cluster.device.name},
               {"ranks_per_node", job.cluster.ranks_per_node},
               {"fabric", described_fabric(job.cluster)},
               {"placement", described_placement(job.cluster)}};
  if (ranks) json["ranks"] = *ranks;
  json["batch_per_rank"] = job.question.batch_per_rank;
  if (table.network.work.sequence > 0) json["sequence"] = table.network.work.sequence;
  if (job.question.accumulate > 1) json["accumulate"] = job.question.accumulate;
  json["precision"] = name(job.question.precision);
  json.update(setting_json(job));
  if (!job.question.what_if.empty()) json["what_if"] = job.question.what_if;
  json["device_memory_bytes"] = job.cluster.device.memory.value.value();
  return json;
}

Json sensitivity_json(const PredictionTable& table) {
  Json json = {{"name", table.rows[table.best()].name}, {"parts", Json::array()}};
  for (const simulator::BetterPart& better : table.better)
    json["parts"].push_back({{"part", key(better.part)},
                             {"factor", better.factor},
                             {"iteration_s", better.iteration.value()},
                             {"iteration_chosen_anew_s", better.chosen_anew.value()}});
  return json;
}

Json table_json(const PredictionTable& table) {
  Json json = document_of("paceline.prediction/1", table, table.ranks);
  json["strategies"] = rows_json(table);
  json["best"] = best_json(table);
  json["left_out"] = left_out_json(table);
  json["warnings"] = table.warnings;
  if (table.job.stragglers) json["stragglers"] = straggler_json(table.job);
  if (!table.better.empty()) json["sensitivity"] = sensitivity_json(table);
  json["rests_on"] = basis_json(table.job);
  return json;
}

}  // namespace

Json left_out_json(const PredictionTable& table) {
  Json json = Json::array();
  for (const simulator::LeftOut& row : table.left_out)
    json.push_back({{"name", row.name},
                    {"wire_type", name(row.wire)},
                    {"why", row.why},
                    {"remedy", row.remedy}});
  return json;
}

Json setting_json(const Job& job) {
  return {{"nic", job.question.nic.empty() ? Json(nullptr) : Json(job.question.nic)},
          {"engine", name(job.question.engine)},
          {"profile", job.profile ? Json(job.profile->name) : Json(nullptr)},
          {"gradient_scale", job.question.gradient_scale},
          {"exact_compute", job.question.compute_is_exact},
          {"ignore_memory", job.question.ignore_memory},
          {"overlap", job.question.overlap ? Json(name(*job.question.overlap)) : Json(nullptr)},
          {"given_thresholds", given_thresholds(job.question.thresholds)},
          {"partly_taken", job.plan ? Json::array() : partly_taken(job)},
          {"plan", job.plan ? Json(job.plan_file) : Json(nullptr)}};
}

std::string to_json(const PredictionTable& table) {
  return table_json(table).indented();
}

std::string predictions_json(std::span<const PredictionTable> tables) {
  Json json = {{"schema", "paceline.predictions/1"}, {"predictions", Json::array()}};
  for (const PredictionTable& table : tables) json["predictions"].push_back(table_json(table));
  return json.indented();
}

std::string scaling_json(std::span<const PredictionTable> tables,
                         std::span<const MeasuredThroughput> measured) {
  Json json = document_of("paceline.scaling/1", tables.front(), std::nullopt);
  json["points"] = Json::array();
  for (const PredictionTable& table : tables)
    json["points"].push_back({{"ranks", table.ranks},
                              {"strategies", rows_json(table)},
                              {"best", best_json(table)},
                              {"left_out", left_out_json(table)}});
  json["measured"] = Json::array();
  for (const MeasuredThroughput& one : measured)
    json["measured"].push_back({{"ranks", one.ranks},
                                {"throughput_per_s", one.samples.value()},
                                {"provenance", "measured"}});
  json["warnings"] = all_warnings(tables);
  json["rests_on"] = basis_json(tables.front().job);
  return json.indented();
}

}  // namespace paceline::job

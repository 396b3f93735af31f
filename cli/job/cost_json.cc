// The document of docs/formats.md that holds training runs. Tests: tests/cli/cost_test.py.

#include "cli/job/cost_table.h"
#include "cli/job/document_values.h"
#include "models/base/json.h"

namespace paceline::job {
namespace {

Json length_json(const models::Length& length) {
  return {{"count", length.count}, {"measure", models::name(length.measure)}};
}

Json run_json(const models::TrainingRun& run) {
  Json json = {{"name", run.name.empty() ? Json(nullptr) : Json(run.name)},
               {"dataset", nullptr},
               {"start_up", stated(run.start_up, "s")},
               {"evaluation", nullptr},
               {"checkpoint", nullptr}};
  if (run.dataset)
    json["dataset"] = {
        {"name", run.dataset->name.empty() ? Json(nullptr) : Json(run.dataset->name)},
        {"samples", run.dataset->samples}};
  if (run.evaluation)
    json["evaluation"] = {{"samples", run.evaluation->samples},
                          {"every", length_json(run.evaluation->every)}};
  if (run.checkpoint)
    json["checkpoint"] = {
        {"time", stated(std::optional<Figure<Seconds>>(run.checkpoint->time), "s")},
        {"every", length_json(run.checkpoint->every)}};
  return json;
}

Json phases_json(const CostTable& table) {
  Json phases = Json::array();
  for (std::size_t i = 0; i < table.run.phases.size(); ++i) {
    const Job& job = table.job(i);
    const simulator::PhaseTime& time = table.rows.front().time.phases[i];
    Json phase = {{"name", table.run.phases[i].name},
                  {"length", length_json(table.run.phases[i].length)},
                  {"batch_per_rank", job.question.batch_per_rank},
                  {"accumulate", job.question.accumulate},
                  {"precision", name(job.question.precision)},
                  {"samples", time.samples},
                  {"iterations", time.iterations},
                  {"evaluations", time.evaluations},
                  {"checkpoints", time.checkpoints}};
    if (job.networks.front().work.sequence > 0)
      phase["sequence"] = job.networks.front().work.sequence;
    phases.push_back(std::move(phase));
  }
  return phases;
}

Json row_json(const CostRow& row) {
  Json json = {{"name", row.name}, {"wire_type", name(row.phases.front()->plan.wire)}};
  add_interval(json, "time", "s", row.time.total);
  json["training_s"] = row.time.training.value.value();
  json["evaluation_s"] = row.time.evaluation.value.value();
  json["checkpoint_s"] = row.time.checkpoint.value.value();
  json["start_up_s"] = row.time.start_up.value.value();
  json["samples"] = row.time.samples;
  json["iterations"] = row.time.iterations;
  json["throughput_per_s"] = row.time.samples / row.time.training.value.value();
  add_interval(json, "device", "hours", row.expenses.device_hours);
  add_interval(json, "cost", "usd", row.expenses.cost);
  add_interval(json, "energy", "kwh", row.expenses.energy);
  json["phases"] = Json::array();
  for (std::size_t i = 0; i < row.phases.size(); ++i) {
    Json phase = {{"wire_type", name(row.phases[i]->plan.wire)}};
    add_interval(phase, "iteration", "s", row.phases[i]->iteration);
    phase["throughput_per_s"] = row.phases[i]->throughput.value();
    phase["training_s"] = row.time.phases[i].training.value.value();
    phase["evaluation_s"] = row.time.phases[i].evaluation.value.value();
    phase["checkpoint_s"] = row.time.phases[i].checkpoint.value.value();
    phase["compute_source"] = row.phases[i]->compute_source;
    json["phases"].push_back(std::move(phase));
  }
  return json;
}

Json best_json(const CostTable& table) {
  const auto named = [&](std::size_t row) -> Json {
    return {{"name", table.rows[row].name},
            {"wire_type", name(table.rows[row].phases.front()->plan.wire)}};
  };
  Json json = named(table.best());
  json["tied"] = Json::array();
  for (const std::size_t row : table.tied()) json["tied"].push_back(named(row));
  return json;
}

}  // namespace

std::string to_json(const CostTable& table) {
  const Job& job = table.job(0);
  const models::Cluster& cluster = job.cluster;
  Json json = {{"schema", "paceline.cost/1"},
               {"model", job.networks.front().work.name},
               {"cluster", cluster.name},
               {"ranks", table.ranks},
               {"nodes", table.rows.front().expenses.nodes},
               {"device", cluster.device.name}};
  json.update(setting_json(job));
  json["price_of_node"] = stated(cluster.price, "usd_per_h");
  json["power"] = stated(simulator::power_of(cluster, table.ranks), "w");
  json["run"] = run_json(table.run);
  json["phases"] = phases_json(table);
  json["strategies"] = Json::array();
  for (const CostRow& row : table.rows) json["strategies"].push_back(row_json(row));
  json["best"] = best_json(table);
  json["left_out"] = Json::array();
  for (const simulator::LeftOut& row : table.left_out)
    json["left_out"].push_back({{"name", row.name},
                                {"wire_type", name(row.wire)},
                                {"why", row.why},
                                {"remedy", row.remedy}});
  json["warnings"] = table.warnings;
  return json.indented();
}

}  // namespace paceline::job

// The documents of docs/formats.md that hold candidates. Tests: tests/cli/capacity_test.py.
#include <fmt/format.h>

#include <algorithm>

#include "cli/job/capacity.h"
#include "cli/job/document_values.h"
#include "models/base/json.h"

namespace paceline::job {
namespace {

Json clusters_json(const Capacity& capacity) {
  Json clusters = Json::array();
  for (std::size_t i = 0; i < capacity.clusters.size(); ++i) {
    const NamedCluster& named = capacity.clusters[i];
    Json json = {{"label", named.label()},
                 {"cluster", named.cluster},
                 {"nic", named.nic.empty() ? Json(nullptr) : Json(named.nic)}};
    for (const CapacityCandidate& candidate : capacity.candidates) {
      if (candidate.cluster != i) continue;
      const models::Cluster& cluster = candidate.job().cluster;
      json["device"] = cluster.device.name;
      json["ranks_per_node"] = cluster.ranks_per_node;
      json["device_memory_bytes"] = cluster.device.memory.value.value();
      json["price_of_node"] = stated(cluster.price, "usd_per_h");
      json["rated_power_of_device"] = stated(cluster.device.power, "w");
      json["power_of_node"] = stated(cluster.power.node, "w");
      break;
    }
    clusters.push_back(std::move(json));
  }
  return clusters;
}

Json phases_json(const CapacityCandidate& candidate) {
  Json phases = Json::array();
  const CostRow& row = candidate.row();
  for (std::size_t i = 0; i < row.phases.size(); ++i) {
    const Job& job = candidate.cost.job(i);
    Json phase = {{"batch_per_rank", job.question.batch_per_rank},
                  {"accumulate", job.question.accumulate},
                  {"precision", name(job.question.precision)},
                  {"wire_type", name(row.phases[i]->plan.wire)},
                  {"efficiency", row.phases[i]->efficiency},
                  {"memory_bytes", row.phases[i]->memory.total().value()},
                  {"largest_batch_per_rank", row.phases[i]->largest_batch}};
    add_interval(phase, "iteration", "s", row.phases[i]->iteration);
    phases.push_back(std::move(phase));
  }
  return phases;
}

bool is_on_front(const Capacity& capacity, std::size_t candidate) {
  return std::find(capacity.front.begin(), capacity.front.end(), candidate) != capacity.front.end();
}

Json candidate_json(const Capacity& capacity, std::size_t index) {
  const CapacityCandidate& candidate = capacity.candidates[index];
  const CostRow& row = candidate.row();
  Json json = {{"cluster", capacity.label(candidate)},
               {"device", candidate.job().cluster.device.name},
               {"ranks", candidate.ranks},
               {"nodes", candidate.nodes},
               {"batch_per_rank", candidate.job().question.batch_per_rank},
               {"accumulate", candidate.job().question.accumulate},
               {"strategy", row.name},
               {"by_library_model", row.by_library_model},
               {"on_front", is_on_front(capacity, index)}};
  add_interval(json, "time", "s", row.time.total);
  add_interval(json, "cost", "usd", row.expenses.cost);
  add_interval(json, "energy", "kwh", row.expenses.energy);
  add_interval(json, "device", "hours", row.expenses.device_hours);
  add_interval(json, "efficiency", "", candidate.outcome.efficiency);
  json["efficiency_baseline_ranks"] = row.phases.front()->baseline_ranks;
  json["throughput_per_s"] = row.time.samples / row.time.training.value.value();
  json["iterations"] = row.time.iterations;
  json["phases"] = phases_json(candidate);
  return json;
}

Json efficient_json(const std::optional<EfficientRanks>& at) {
  if (!at) return nullptr;
  return {{"ranks", at->ranks}, {"nodes", at->nodes}, {"efficiency", at->efficiency}};
}

Json reach_json(const Capacity& capacity, const EfficiencyReach& reach) {
  Json json = {{"cluster", capacity.clusters[reach.cluster].label()},
               {"holds", efficient_json(reach.holds)},
               {"falls", efficient_json(reach.falls)},
               {"is_exact", reach.is_exact},
               {"holds_again_later", reach.is_again},
               {"bandwidth", nullptr}};
  if (!reach.largest) return json;
  Json bandwidth = {{"at", efficient_json(reach.largest)},
                    {"own_bytes_per_s", reach.own.value()},
                    {"needed_bytes_per_s", nullptr},
                    {"why_not", nullptr}};
  if (reach.needed) {
    bandwidth["needed_bytes_per_s"] = reach.needed->value();
    bandwidth["efficiency"] = reach.efficiency_at_needed;
  } else {
    bandwidth["why_not"] = reach.why_not;
  }
  json["bandwidth"] = std::move(bandwidth);
  return json;
}

Json narrowings_json(const Capacity& capacity) {
  Json narrowings = Json::array();
  const std::string of = capacity.demand.asks_for_cheapest() ? "cost_usd" : "time_s";
  for (const Narrowing& narrowing : capacity.narrowings)
    narrowings.push_back({{"known", name(narrowing.group)},
                          {"of", of},
                          {"low", narrowing.interval.low},
                          {"high", narrowing.interval.high},
                          {"share", narrowing.share}});
  return narrowings;
}

template <class Q>
Json or_null(const std::optional<Q>& value) {
  return value ? Json(number(*value)) : Json(nullptr);
}
Json index_or_null(const std::optional<std::size_t>& index) {
  return index ? Json(*index) : Json(nullptr);
}

}  // namespace

std::string to_json(const Capacity& capacity) {
  const Job& job = capacity.candidates.front().job();
  const simulator::Demand& demand = capacity.demand;
  Json json = {
      {"schema", "paceline.capacity/1"},
      {"model", job.networks.front().work.name},
      {"precision", name(job.question.precision)},
      {"global_batch", capacity.global_batch ? Json(*capacity.global_batch) : Json(nullptr)}};
  json["asked"] = {{"within_s", or_null(demand.within)},
                   {"budget_usd", or_null(demand.budget)},
                   {"efficiency", or_null(demand.efficiency)},
                   {"cautious", demand.cautious}};
  json["clusters"] = clusters_json(capacity);
  json["candidates"] = Json::array();
  for (std::size_t i = 0; i < capacity.candidates.size(); ++i)
    json["candidates"].push_back(candidate_json(capacity, i));
  json["front"] = capacity.front;
  json["answer"] = index_or_null(capacity.answer);
  json["nearest"] = index_or_null(capacity.nearest);
  json["left_out"] = Json::array();
  for (const NoCandidate& line : capacity.left_out)
    json["left_out"].push_back({{"cluster", capacity.clusters[line.cluster].label()},
                                {"ranks", line.ranks},
                                {"why", line.why},
                                {"remedy", line.remedy}});
  json["not_compared"] = Json::array();
  for (const NotCompared& one : capacity.not_compared)
    json["not_compared"].push_back({{"name", one.name},
                                    {"candidates", one.candidates},
                                    {"why", one.why},
                                    {"remedy", one.remedy}});
  json["efficiency"] = Json::array();
  for (const EfficiencyReach& reach : capacity.reaches)
    json["efficiency"].push_back(reach_json(capacity, reach));
  json["narrowing"] = narrowings_json(capacity);
  json["warnings"] = capacity.warnings;
  return json.indented();
}

std::string to_csv(const Capacity& capacity) {
  std::string text =
      "cluster,device,ranks,nodes,batch_per_rank,accumulate,strategy,time_s,time_low_s,time_high_s,"
      "cost_usd,cost_low_usd,cost_high_usd,energy_kwh,energy_low_kwh,energy_high_kwh,efficiency,"
      "efficiency_low,efficiency_high,on_front,answer,provenance\n";
  const auto cells = [](const auto& figure) -> std::string {
    if (!figure) return ",,";
    return fmt::format("{:.9g},{:.9g},{:.9g}", number(figure->value), number(figure->low),
                       number(figure->high));
  };
  for (std::size_t i = 0; i < capacity.candidates.size(); ++i) {
    const CapacityCandidate& candidate = capacity.candidates[i];
    const CostRow& row = candidate.row();
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{:d},{:d},predicted\n", in_csv(capacity.label(candidate)),
        in_csv(candidate.job().cluster.device.name), candidate.ranks, candidate.nodes,
        candidate.job().question.batch_per_rank, candidate.job().question.accumulate,
        in_csv(row.name), cells(&row.time.total), cells(row.expenses.cost),
        cells(row.expenses.energy), cells(&candidate.outcome.efficiency), is_on_front(capacity, i),
        capacity.answer == i);
  }
  return text;
}

}  // namespace paceline::job

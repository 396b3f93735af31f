// Tests: tests/cli (end to end), tests/golden.
#include "cli/prediction_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/table.h"
#include "models/base/parse_units.h"
#include "models/cluster/placement.h"
#include "simulator/engine/prepare.h"

namespace paceline::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string thresholds_text(const models::Strategy& strategy,
                            const models::Thresholds& thresholds) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (strategy.fusion == models::Fusion::by_default || thresholds.fusion > Bytes{0})
    add("theta " + to_text_binary(thresholds.fusion));
  if (strategy.hybrid() != nullptr) add("eta " + to_text(thresholds.hybrid));
  if (strategy.takes_group()) add(fmt::format("k {}", thresholds.group_size));
  if (strategy.takes_segments()) add(fmt::format("{} segments", thresholds.segments));
  if (strategy.takes_rings() && thresholds.rings > 0)
    add(fmt::format("{} rings", thresholds.rings));
  if (strategy.on_servers() != nullptr)
    add(fmt::format("{} servers, {}", thresholds.servers, name(thresholds.placement)));
  if (strategy.on_servers() == nullptr && thresholds.streams > 1)
    add(fmt::format("{} streams", thresholds.streams));
  return text;
}

template <class Q, class Text>
std::string figure_line(const char* what, const Figure<Q>& figure, Text text) {
  const std::string spread = figure.low == figure.high
                                 ? ""
                                 : fmt::format(" ({} to {})", text(figure.low), text(figure.high));
  return fmt::format("  {:<18} {}{}, {}: {}\n", what, text(figure.value), spread,
                     name(figure.provenance), figure.source);
}

template <class Q>
const Figure<Q>& calibrated_or(const std::optional<Figure<Q>>& calibrated,
                               const Figure<Q>& stated) {
  return calibrated ? *calibrated : stated;
}

Json thresholds_json(const models::Strategy& strategy, const models::Thresholds& thresholds) {
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
  if (strategy.on_servers() == nullptr && thresholds.streams > 1)
    json["streams"] = thresholds.streams;
  return json;
}

// {"forward_s": ..., "all_reduce_s": ...}
Json critical_path_json(const simulator::StrategyPrediction& row) {
  Json json = Json::object();
  for (const simulator::PathShare& share : row.critical_path) {
    std::string key(name(share.kind));
    std::replace_if(
        key.begin(), key.end(), [](char c) { return c == '-' || c == ' '; }, '_');
    json[key + "_s"] = share.time.value();
  }
  return json;
}

Seconds mean_iteration(const simulator::StrategyPrediction& row) {
  return row.stragglers ? row.stragglers->iteration.mean : row.iteration.value;
}

std::string assignments_text(const std::map<int, double>& values) {
  std::string text;
  for (const auto& [index, value] : values)
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", index, value);
  return text;
}

// What differs between ranks, and what the columns about it are.
std::string straggler_note(const PredictionTable& table) {
  if (!table.job.stragglers) return "";
  const simulator::MonteCarloRequest& request = *table.job.stragglers;
  const models::Stragglers& stragglers = request.stragglers;
  std::string text =
      fmt::format("mean, p50, p99: {} simulated iterations (seed {}), compute times {}",
                  request.iterations, request.seed, stragglers.spread.text);
  if (!stragglers.spread.samples.empty())
    text += fmt::format(" ({} samples)", stragglers.spread.samples.size());
  if (!stragglers.slow_ranks.empty())
    text += fmt::format(", slow ranks {}", assignments_text(stragglers.slow_ranks));
  text += "; all other columns are without them\n";
  const bool has_library = std::any_of(table.rows.begin(), table.rows.end(),
                                       [](const auto& row) { return row.by_library_model; });
  if (!table.job.cluster.slow_nodes.empty())
    text +=
        fmt::format("slow nodes, in every column{}: {} of the NICs' bandwidth\n",
                    has_library ? " of ours" : "", assignments_text(table.job.cluster.slow_nodes));
  const int counted = table.ranks - stragglers.backup;
  if (stragglers.backup > 0)
    text += fmt::format(
        "backup workers: an update waits for the first {} of {} gradients; all-reduces run over "
        "all {} ranks\n",
        counted, table.ranks, table.ranks);
  return text + fmt::format("mean throughput: {} samples in the mean iteration\n",
                            static_cast<std::int64_t>(counted) * table.job.batch_per_rank);
}

void add_straggler_fields(Json& json, const simulator::StragglerPrediction& row) {
  const simulator::IterationSummary& iteration = row.iteration;
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
}

Json straggler_json(const PredictionTable& table) {
  const simulator::MonteCarloRequest& request = *table.job.stragglers;
  const auto object = [](const std::map<int, double>& values) {
    Json json = Json::object();
    for (const auto& [index, value] : values) json[std::to_string(index)] = value;
    return json;
  };
  return {{"spread", request.stragglers.spread.text},
          {"slow_ranks", object(request.stragglers.slow_ranks)},
          {"slow_nodes", object(table.job.cluster.slow_nodes)},
          {"backup", request.stragglers.backup},
          {"monte_carlo_iterations", request.iterations},
          {"seed", request.seed}};
}

std::string asked_or_chosen(const Job& job) {
  std::string asked;
  if (job.thresholds.fusion) asked += " theta";
  if (job.thresholds.hybrid) asked += " eta";
  if (job.thresholds.group_size) asked += " k";
  return asked.empty() ? "chosen by the planner (--theta, --eta and --group set them)"
                       : fmt::format("given:{}; the others chosen by the planner", asked);
}

std::string link_lines(const models::Cluster& cluster, const models::Profile& profile) {
  const auto time = [](Seconds v) { return to_text(v); };
  const auto rate = [](BytesPerSecond v) { return to_text(v); };
  return figure_line("NIC latency", calibrated_or(profile.nic_latency, cluster.nic.latency), time) +
         figure_line("NIC bandwidth", calibrated_or(profile.nic_bandwidth, cluster.nic.bandwidth),
                     rate) +
         figure_line("intra latency", calibrated_or(profile.intra_latency, cluster.intra.latency),
                     time) +
         figure_line("intra bandwidth",
                     calibrated_or(profile.intra_bandwidth, cluster.intra.bandwidth), rate);
}

}  // namespace

std::string fabric_text(const models::Cluster& cluster) {
  return cluster.platform == nullptr ? described(cluster.fabric)
                                     : fmt::format("platform {}", cluster.platform->name);
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::size_t PredictionTable::best() const {
  const auto faster = [](const auto& a, const auto& b) {
    if (a.by_library_model != b.by_library_model) return b.by_library_model;
    return mean_iteration(a) < mean_iteration(b);
  };
  return static_cast<std::size_t>(std::min_element(rows.begin(), rows.end(), faster) -
                                  rows.begin());
}

PredictionTable predict_table(const Job& job, const LoadedNetwork& network, int ranks) {
  PredictionTable table{job, network, ranks, {}, {}};
  for (const models::WireType wire : job.wires) {
    simulator::Predictor predictor(job.request(network, ranks, wire));
    for (const models::Strategy* strategy : job.strategies) {
      try {
        table.rows.push_back(predictor.predict(*strategy));
      } catch (const simulator::TooManyMessages& error) {
        if (job.strategies.size() == 1) throw;
        table.left_out.push_back({std::string(strategy->name), wire, error.what()});
        fmt::print(stderr, "paceline: warning: {} is left out: {}\n", strategy->name, error.what());
      }
    }
  }
  if (table.rows.empty())
    throw InputError(fmt::format("no strategy can be timed on {} ranks", ranks),
                     "choose fewer, or a multiple of the ranks of a node or switch");
  return table;
}

std::string basis_text(const Job& job) {
  const models::Cluster& cluster = job.cluster;
  const models::Profile none;
  const models::Profile& profile = job.profile ? *job.profile : none;
  const auto rate = [](BytesPerSecond v) { return to_text(v); };
  const auto number = [](double v) { return fmt::format("{:.3g}", v); };
  std::string text;
  if (cluster.platform != nullptr) {
    text += fmt::format("  {:<18} {}: {} hosts, {} links\n", "platform", cluster.platform->name,
                        cluster.platform->hosts.size(), cluster.platform->links.size());
  } else {
    text += link_lines(cluster, profile);
  }
  if (cluster.fabric.kind != models::FabricKind::flat)
    text += fmt::format("  {:<18} {}\n", "fabric", fabric_text(cluster));
  if (profile.uplink_oversubscription && cluster.fabric.kind == models::FabricKind::fat_tree)
    text += figure_line("uplink of a leaf", *profile.uplink_oversubscription,
                        [](double v) { return fmt::format("{:.3g}:1", v); });
  if (cluster.placement != models::Placement::node_major || !cluster.slots.empty())
    text += fmt::format("  {:<18} {}\n", "placement", described_placement(cluster));
  text += figure_line("memory bandwidth", cluster.device.memory_bandwidth, rate);
  text += figure_line("memory efficiency", cluster.device.memory_efficiency, number);
  return text;
}

// What times the all-reduces of a row, in a word.
std::string engine_text(const simulator::StrategyPrediction& row) {
  if (!models::strategy(row.name).library()) return std::string(name(row.engine));
  return row.by_library_model ? "own model" : "own curve";
}

std::string library_note(const PredictionTable& table) {
  std::string text;
  std::set<std::string> noted;
  for (const simulator::StrategyPrediction& row : table.rows) {
    if (!models::strategy(row.name).library() || !noted.insert(row.name).second) continue;
    text +=
        fmt::format("{}: all-reduces timed by {}{}\n", row.name, row.timed_by,
                    row.by_library_model ? " from the line rates: another program's prediction, "
                                           "without an interval and not ranked with ours"
                                         : "");
  }
  return text;
}

std::string to_text(const PredictionTable& table) {
  const models::Cluster& cluster = table.job.cluster;
  const int g = cluster.ranks_per_node;
  const int nodes = (table.ranks + g - 1) / g;
  std::string text =
      fmt::format("{} on {}: {} rank{} ({} node{} of {} {}), batch {} per rank, {} precision\n\n",
                  table.network.work.name, cluster.name, table.ranks, table.ranks == 1 ? "" : "s",
                  nodes, nodes == 1 ? "" : "s", g, cluster.device.name, table.job.batch_per_rank,
                  name(table.job.precision));
  std::vector<Table::Column> columns = {
      {"  strategy", Align::left}, {"wire", Align::left}, {"iteration"}, {"interval"}};
  if (table.job.stragglers) {
    for (const char* title : {"mean ± stderr", "p50", "p99", "mean throughput"})
      columns.push_back({title});
  }
  columns.insert(columns.end(), {{"throughput"},
                                 {"efficiency"},
                                 {"exposed comm."},
                                 {"comm."},
                                 {"buckets"},
                                 {"engine", Align::left},
                                 {"thresholds", Align::left}});
  Table rows(std::move(columns));
  const std::size_t best = table.best();
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const simulator::StrategyPrediction& row = table.rows[i];
    std::vector<std::string> cells = {
        (i == best ? "* " : "  ") + row.name, std::string(name(row.wire)),
        to_text(row.iteration.value),
        fmt::format("{} - {}", to_text(row.iteration.low), to_text(row.iteration.high))};
    if (row.stragglers) {
      const simulator::IterationSummary& simulated = row.stragglers->iteration;
      cells.insert(cells.end(), {fmt::format("{} ± {}", to_text(simulated.mean),
                                             to_text(simulated.standard_error)),
                                 to_text(simulated.p50.value), to_text(simulated.p99.value),
                                 to_text(row.stragglers->throughput)});
    }
    cells.insert(
        cells.end(),
        {to_text(row.throughput), percent(row.efficiency), to_text(row.spent.exposed_communication),
         to_text(row.spent.communication), fmt::format("{}", row.buckets), engine_text(row),
         row.thresholds ? thresholds_text(models::strategy(row.name), *row.thresholds)
                        : "of the plan"});
    rows.add(std::move(cells));
  }
  text += rows.text();

  const simulator::StrategyPrediction& winner = table.rows[best];
  const auto share = [&](Seconds part) { return percent(part / winner.iteration.value); };
  text += fmt::format(
      "\n* the shortest iteration{}: compute {} (update {}), exposed communication {}, waiting for "
      "input {}\n",
      table.job.stragglers ? " in the mean; without stragglers" : "", share(winner.spent.compute),
      share(winner.spent.update), share(winner.spent.exposed_communication),
      share(winner.spent.input_wait));
  std::string path;
  for (const simulator::PathShare& part : winner.critical_path) {
    path += fmt::format("{}{} {}", path.empty() ? "" : ", ", name(part.kind), share(part.time));
  }
  text += fmt::format("  its critical path: {}\n", path);
  text += fmt::format(
      "efficiency: against p0 = {} rank{} with the same strategy; interval: all figures at their "
      "fast or slow end\n",
      winner.baseline_ranks, winner.baseline_ranks == 1 ? "" : "s");
  text += fmt::format("theta, eta, k: {}\n", asked_or_chosen(table.job));
  text += straggler_note(table);
  text += library_note(table);
  text += "\nAll times are predicted, by the engine of their line. They rest on:\n";
  text += fmt::format("  {:<18} {}\n", "compute", winner.compute_source);
  text += basis_text(table.job);
  for (const auto& row : table.rows) {
    if (!row.converged)
      text += fmt::format(
          "  warning: {} did not reach a steady state; its time is that of its slowest task\n",
          row.name);
  }
  return text;
}

Json to_json(const simulator::StrategyPrediction& row) {
  Json json = {
      {"name", row.name},
      {"iteration_s", row.iteration.value.value()},
      {"iteration_low_s", row.iteration.low.value()},
      {"iteration_high_s", row.iteration.high.value()},
      {"throughput_per_s", row.throughput.value()},
      {"efficiency", row.efficiency},
      {"efficiency_baseline_ranks", row.baseline_ranks},
      {"compute_s", row.spent.compute.value()},
      {"update_s", row.spent.update.value()},
      {"exposed_communication_s", row.spent.exposed_communication.value()},
      {"input_wait_s", row.spent.input_wait.value()},
      {"communication_s", row.spent.communication.value()},
      {"critical_path", critical_path_json(row)},
      {"buckets", row.buckets},
      {"wire_type", name(row.wire)},
      {"overlap", name(row.overlap)},
      {"thresholds", row.thresholds ? thresholds_json(models::strategy(row.name), *row.thresholds)
                                    : Json(nullptr)},
      {"steady", row.converged},
      {"provenance", "predicted"},
      {"timed_by", row.timed_by},
      {"compute_source", row.compute_source}};
  if (row.stragglers) add_straggler_fields(json, *row.stragglers);
  return json;
}

Json left_out_json(const PredictionTable& table) {
  Json json = Json::array();
  for (const PredictionTable::LeftOut& row : table.left_out)
    json.push_back({{"name", row.name}, {"wire_type", name(row.wire)}, {"why", row.why}});
  return json;
}

Json to_json(const PredictionTable& table) {
  Json strategies = Json::array();
  for (const auto& row : table.rows) strategies.push_back(to_json(row));
  Json json = {{"schema", "paceline.prediction/1"},
               {"model", table.network.work.name},
               {"cluster", table.job.cluster.name},
               {"fabric", fabric_text(table.job.cluster)},
               {"placement", described_placement(table.job.cluster)},
               {"ranks", table.ranks},
               {"batch_per_rank", table.job.batch_per_rank},
               {"precision", name(table.job.precision)},
               {"engine", name(table.job.engine)},
               {"profile", table.job.profile ? Json(table.job.profile->name) : Json(nullptr)},
               {"strategies", std::move(strategies)},
               {"left_out", left_out_json(table)}};
  if (table.job.stragglers) json["stragglers"] = straggler_json(table);
  return json;
}

}  // namespace paceline::cli

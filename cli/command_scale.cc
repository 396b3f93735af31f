// paceline scale: the scaling curve of every strategy.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/prediction_text.h"
#include "cli/table.h"
#include "models/base/parse_units.h"
#include "models/cluster/placement.h"

namespace paceline::cli {
namespace {

struct Options {
  JobOptions job;
  bool json = false;
};

// "8,16,24", or "8-2048": the first number, doubled until the last, which is included.
std::vector<int> parse_rank_range(const std::string& text, const models::Cluster& cluster) {
  const std::size_t dash = text.find('-', 1);
  std::vector<int> ranks;
  if (dash == std::string::npos) {
    for (const std::string& part : parsing_option("--ranks", [&] { return comma_list(text); }))
      ranks.push_back(parse_ranks(part, cluster));
    return ranks;
  }
  const int first = parse_ranks(text.substr(0, dash), cluster);
  const int last = parse_ranks(text.substr(dash + 1), cluster);
  if (last < first)
    throw InputError({"--ranks"}, fmt::format("'{}' goes down", text),
                     fmt::format("write {}-{}", last, first));
  for (std::int64_t p = first; p < last; p *= 2) ranks.push_back(static_cast<int>(p));
  ranks.push_back(last);
  return ranks;
}

std::string curve_text(const Job& job, const LoadedNetwork& network,
                       const std::vector<PredictionTable>& tables) {
  std::string text =
      fmt::format("{} on {} ({}), batch {} per rank, {} precision: throughput and efficiency\n\n",
                  network.work.name, job.cluster.name, job.cluster.device.name, job.batch_per_rank,
                  name(job.precision));
  std::vector<Table::Column> columns = {{"ranks"}};
  for (const models::WireType wire : job.wires) {
    for (const models::Strategy* strategy : job.strategies)
      columns.push_back({fmt::format("{} {}", strategy->name, name(wire))});
  }
  Table rows(std::move(columns));
  for (const PredictionTable& table : tables) {
    std::vector<std::string> cells = {fmt::format("{}", table.ranks)};
    const std::size_t best = table.best();
    // Rows are in the order of the columns, without those that were left out.
    std::size_t i = 0;
    for (const models::WireType wire : job.wires) {
      for (const models::Strategy* strategy : job.strategies) {
        if (i == table.rows.size() || table.rows[i].name != strategy->name ||
            table.rows[i].wire != wire) {
          cells.emplace_back("-");
          continue;
        }
        cells.push_back(fmt::format("{}{:.0f} /s {:>7}", i == best ? "* " : "",
                                    table.rows[i].throughput.value(),
                                    percent(table.rows[i].efficiency)));
        ++i;
      }
    }
    rows.add(std::move(cells));
  }
  text += rows.text();
  text += fmt::format(
      "\n* the most samples per second in its line; efficiency is against p0 = {} ranks (1 rank "
      "below that)\n",
      job.cluster.ranks_per_node);
  text += library_note(tables.front());
  text += fmt::format("\nAll times are predicted (engine: {}). They rest on:\n", name(job.engine));
  text += fmt::format("  {:<18} {}\n", "compute", tables.front().rows.front().compute_source);
  return text + basis_text(job);
}

nlohmann::ordered_json curve_json(const Job& job, const LoadedNetwork& network,
                                  const std::vector<PredictionTable>& tables) {
  nlohmann::ordered_json points = nlohmann::ordered_json::array();
  for (const PredictionTable& table : tables) {
    nlohmann::ordered_json strategies = nlohmann::ordered_json::array();
    for (const auto& row : table.rows) strategies.push_back(to_json(row));
    points.push_back({{"ranks", table.ranks},
                      {"strategies", std::move(strategies)},
                      {"left_out", left_out_json(table)}});
  }
  return {{"schema", "paceline.scaling/1"},
          {"model", network.work.name},
          {"cluster", job.cluster.name},
          {"batch_per_rank", job.batch_per_rank},
          {"precision", name(job.precision)},
          {"engine", name(job.engine)},
          {"profile", job.profile ? nlohmann::ordered_json(job.profile->name)
                                  : nlohmann::ordered_json(nullptr)},
          {"points", std::move(points)}};
}

void run(const Options& options) {
  const Job job = load_job(options.job);
  if (job.networks.size() != 1)
    throw InputError({"--model"}, fmt::format("{} networks", job.networks.size()),
                     "scale takes one");
  const std::string range = options.job.ranks.empty()
                                ? fmt::format("1-{}", models::placed_ranks(job.cluster))
                                : options.job.ranks;
  std::vector<PredictionTable> tables;
  for (const int ranks : parse_rank_range(range, job.cluster))
    tables.push_back(predict_table(job, job.networks.front(), ranks));
  if (options.json) {
    fmt::print("{}\n", curve_json(job, job.networks.front(), tables).dump(2));
  } else {
    fmt::print("{}", curve_text(job, job.networks.front(), tables));
  }
}

}  // namespace

void add_scale(Command& app) {
  Command& command = app.add_command("scale", "The same over a range of ranks: the scaling curve");
  const auto options = std::make_shared<Options>();
  add_job_options(command, options->job);
  command
      .add_option(
          "--ranks", options->job.ranks,
          "Numbers of ranks: 8,16,24 or 8-2048 (doubling); by default from 1 to all of the cluster")
      .value("LIST|RANGE");
  command.add_flag("--json", options->json, "Print one JSON document");
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli

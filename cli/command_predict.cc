// paceline predict: the iteration time of every strategy.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/files.h"
#include "cli/prediction_text.h"
#include "cli/straggler_options.h"
#include "simulator/iteration/timeline.h"

namespace paceline::cli {
namespace {

struct Options {
  JobOptions job;
  StragglerOptions stragglers;
  std::string timeline;
  bool json = false;
};

// The timeline of the fastest row.
void write_timeline(const PredictionTable& table, const std::string& path) {
  const simulator::StrategyPrediction& row = table.rows[table.best()];
  simulator::Predictor predictor(table.job.request(table.network, table.ranks, row.wire));
  const simulator::StrategyRun run = predictor.run(models::strategy(row.name));
  const std::string title = fmt::format(
      "{} on {}, {} ranks, batch {}, {}, {} on the wire", table.network.work.name,
      table.job.cluster.name, table.ranks, table.job.batch_per_rank, row.name, name(row.wire));
  models::Timeline timeline = simulator::predicted_timeline(run, title);
  timeline.batch_per_rank = table.job.batch_per_rank;
  write_output_file(path, models::chrome_trace(table.network.work, run.plan, {timeline}));
  fmt::print(stderr, "timeline of {} written to {}: open it in ui.perfetto.dev\n", row.name, path);
}

void run(const Options& options) {
  Job job = load_job(options.job);
  if (options.job.ranks.empty())
    throw InputError("--ranks is missing", fmt::format("give 1 to {}, as in --ranks {}",
                                                       job.cluster.ranks(), job.cluster.ranks()));
  const int ranks = parse_ranks(options.job.ranks, job.cluster);
  job.stragglers = load_stragglers(options.stragglers, ranks);
  slow_nodes(job.cluster, options.stragglers, ranks);
  if (!options.timeline.empty() && job.networks.size() > 1) {
    throw InputError({"--timeline"},
                     fmt::format("{} networks and one timeline", job.networks.size()),
                     "give one --model");
  }
  check_output_of(options.job, "--timeline", options.timeline);
  std::vector<PredictionTable> tables;
  for (const LoadedNetwork& network : job.networks)
    tables.push_back(predict_table(job, network, ranks));
  if (!options.timeline.empty()) write_timeline(tables.front(), options.timeline);

  if (!options.json) {
    for (std::size_t i = 0; i < tables.size(); ++i)
      fmt::print("{}{}", i == 0 ? "" : "\n\n", to_text(tables[i]));
    return;
  }
  nlohmann::ordered_json json;
  if (tables.size() == 1) {
    json = to_json(tables.front());
  } else {
    json = {{"schema", "paceline.predictions/1"}, {"predictions", nlohmann::ordered_json::array()}};
    for (const PredictionTable& table : tables) json["predictions"].push_back(to_json(table));
  }
  fmt::print("{}\n", json.dump(2));
}

}  // namespace

void add_predict(Command& app) {
  Command& command =
      app.add_command("predict", "Iteration time of every strategy, as a table or JSON");
  const auto options = std::make_shared<Options>();
  add_job_options(command, options->job);
  command.add_option("--ranks", options->job.ranks, "Number of ranks (GPUs, or CPU processes)")
      .value("N");
  add_straggler_options(command, options->stragglers);
  command
      .add_option("--timeline", options->timeline,
                  "Write the fastest row's timeline as Chrome trace JSON (opens in Perfetto)")
      .value("FILE");
  command.add_flag("--json", options->json, "Print one JSON document");
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli

// paceline predict: the iteration time of every strategy.
#include <memory>

#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/job/option_values.h"
#include "cli/output.h"
#include "cli/prediction_progress.h"
#include "cli/prediction_text.h"
#include "cli/shared_options.h"
#include "simulator/iteration/timeline.h"

namespace paceline::cli {
namespace {

struct Options {
  job::JobOptions job;
  job::StragglerOptions stragglers;
  std::string timeline;
  bool wide = false;
  bool json = false;
};

// Writes the timeline of the fastest row.
void write_timeline(const job::PredictionTable& table, const std::string& path) {
  const simulator::StrategyPrediction& row = table.rows[table.best()];
  simulator::Predictor predictor(table.job.request(table.network, table.ranks, row.wire));
  const simulator::StrategyRun run = predictor.run(models::strategy(row.name));
  const std::string title = fmt::format(
      "{} on {}, {} ranks, batch {}, {}, {} on the wire", table.network.work.name,
      table.job.cluster.name, table.ranks, table.job.batch_per_rank, row.name, name(row.wire));
  models::Timeline timeline = simulator::predicted_timeline(run, title);
  timeline.batch_per_rank = table.job.batch_per_rank;
  job::write_output_file(path, models::chrome_trace(table.network.work, run.plan, {timeline}));
  notice("timeline of {} written to {}: open it in ui.perfetto.dev\n", row.name, path);
}

job::Job load(const Options& options) {
  job::Job job = load_job(options.job);
  if (options.job.ranks.empty())
    throw InputError("--ranks is missing", fmt::format("give 1 to {}, as in --ranks {}",
                                                       job.cluster.ranks(), job.cluster.ranks()));
  const int ranks = job::parse_ranks(options.job.ranks, job.cluster);
  job.stragglers = load_stragglers(options.stragglers, ranks);
  job::slow_nodes(job.cluster, options.stragglers, ranks);
  if (!options.timeline.empty() && job.networks.size() > 1) {
    throw InputError({"--timeline"},
                     fmt::format("{} networks and one timeline", job.networks.size()),
                     "give one --model");
  }
  check_output_of(options.job, "--timeline", options.timeline);
  return job;
}

void run(const Options& options) {
  const job::Job job = load(options);
  const int ranks = job::parse_ranks(options.job.ranks, job.cluster);
  const int width = options.wide ? unlimited_width : table_width();
  std::vector<job::PredictionTable> tables;
  for (const job::LoadedNetwork& network : job.networks) {
    PredictionProgress progress(job, network, ranks, width);
    tables.push_back(predict_table(job, network, ranks, progress.observer()));
  }
  warn(all_warnings(tables));
  if (!options.timeline.empty()) write_timeline(tables.front(), options.timeline);
  if (options.json) {
    print("{}\n", tables.size() == 1 ? to_json(tables.front()) : predictions_json(tables));
    return;
  }
  for (std::size_t i = 0; i < tables.size(); ++i)
    print("{}{}", i == 0 ? "" : "\n\n", to_text(tables[i], width));
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
  add_wide_option(command, options->wide);
  command.add_flag("--json", options->json, "Print one JSON document");
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli

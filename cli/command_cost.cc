// paceline cost: the time to train, and what a training run uses up.
#include <memory>

#include "cli/command.h"
#include "cli/cost_text.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/shared_options.h"
#include "cli/table.h"

namespace paceline::cli {
namespace {

struct Options {
  job::JobOptions job;
  job::TrainingRunOptions run;
  bool wide = false;
  bool json = false;
};

void run(const Options& options) {
  Progress progress;
  const job::CostTable table = job::cost_table(
      options.job, options.run,
      [&](const std::string& phase, const models::Strategy& strategy, double share) {
        progress.show(fmt::format("{}, {}", phase, strategy.name), share);
      });
  warn(table.warnings);
  if (options.json) {
    print("{}\n", to_json(table));
    return;
  }
  const int width = options.wide ? unlimited_width : table_width();
  print("{}", wrapped(to_text(table, width), output_is_terminal() ? width : unlimited_width));
}

void add_run_options(Command& command, job::TrainingRunOptions& options) {
  command.add_option("--epochs", options.epochs, "Passes over the data set; may be a fraction")
      .value("N");
  command.add_option("--samples", options.samples, "Samples to train on, in place of --epochs")
      .value("N");
  command
      .add_option("--iterations", options.iterations, "Iterations to train, in place of --epochs")
      .value("N");
  command
      .add_option("--dataset", options.dataset,
                  "Samples of an epoch, or a data set that has so many")
      .value("N|imagenet|cifar-10|cifar-100|mnist|fashion-mnist");
  command
      .add_option("--phases", options.phases,
                  "A training run of several phases, with other batches, lengths of sequence or "
                  "precisions (docs/formats.md)")
      .value("FILE");
  command
      .add_option(
          "--evaluate", options.evaluate,
          "Samples of an evaluation, for which all ranks go forward, and how often there is "
          "one, as in '50000@4 epochs'")
      .value("N[@EVERY] (1 epoch)");
  command
      .add_option(
          "--checkpoint", options.checkpoint,
          "Time for which the run waits while a checkpoint is written, and how often one is, "
          "as in '20s@500 iterations'")
      .value("TIME[@EVERY] (1 epoch)");
  command
      .add_option("--start-up", options.start_up,
                  "Time before the first iteration, as in 90s or 3min")
      .value("TIME");
  command
      .add_option("--node-price", options.node_price,
                  "Price of a node, in place of the cluster's: '24.48 USD/h', or an offer of the "
                  "catalogue such as aws-p5-48xlarge")
      .value("PRICE|NAME");
  command
      .add_option(
          "--node-power", options.node_power,
          "What a node draws in training, in place of what its devices' rated power says, as "
          "in '8 kW'")
      .value("POWER");
}

}  // namespace

void add_cost(Command& app) {
  Command& command = app.add_command(
      "cost", "Time to train: minutes, GPU-hours, dollars and kWh of a training run");
  const auto options = std::make_shared<Options>();
  add_job_options(command, options->job);
  command.add_option("--ranks", options->job.ranks, "Number of ranks (GPUs, or CPU processes)")
      .value("N");
  add_run_options(command, options->run);
  add_plan_option(command, options->job.plan);
  add_wide_option(command, options->wide);
  command.add_flag("--json", options->json, "Print one JSON document");
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli

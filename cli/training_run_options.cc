// Tests: tests/cli/cost_test.py, tests/cli/capacity_test.py.
#include "cli/training_run_options.h"

namespace paceline::cli {

void add_training_run_options(Command& command, job::TrainingRunOptions& options) {
  command.add_option("--epochs", options.epochs, "Passes over the data set; may be a fraction")
      .value("N")
      .python("float");
  command.add_option("--samples", options.samples, "Samples to train on, in place of --epochs")
      .value("N")
      .python("int");
  command
      .add_option("--iterations", options.iterations, "Iterations to train, in place of --epochs")
      .value("N")
      .python("int");
  command.add_option("--dataset", options.dataset, "Samples of an epoch, or the name of a data set")
      .value("N|imagenet|cifar-10|cifar-100|mnist|fashion-mnist")
      .python("int | str");
  command
      .add_option("--phases", options.phases,
                  "A training run of several phases, with other batches, lengths of sequence or "
                  "precisions (docs/formats.md)")
      .value("FILE")
      .python("PathOrName");
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
          "as in '20s@500 iterations'; with --failures it is by default, or by '20s@best', the "
          "interval that makes the run shortest")
      .value("TIME[@EVERY|@best] (1 epoch)");
  command
      .add_option(
          "--failures", options.failures,
          "Hours of a device between interruptions, after each of which the run goes on from "
          "its last checkpoint, and the time until it does, as in 50000h@10min; 'typical' is "
          "what fleets report")
      .value("HOURS[@TIME]|typical");
  command
      .add_option("--spares", options.spares,
                  "Nodes that are paid beside those that train, to take the place of broken ones")
      .value("N")
      .python("int");
  command
      .add_option("--start-up", options.start_up,
                  "Time before the first iteration, as in 90s or 3min")
      .value("TIME");
}

void add_node_price_option(Command& command, job::TrainingRunOptions& options) {
  command
      .add_option("--node-price", options.node_price,
                  "Price of a node, in place of the cluster's: '24.48 USD/h', or an offer of the "
                  "catalogue such as aws-p5-48xlarge")
      .value("PRICE|NAME");
}

void add_node_power_option(Command& command, job::TrainingRunOptions& options) {
  command
      .add_option(
          "--node-power", options.node_power,
          "What a node draws in training, in place of what its devices' rated power says, as "
          "in '8 kW'")
      .value("POWER");
}

}  // namespace paceline::cli

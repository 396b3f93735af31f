// Declarations of the options that say how long a job trains and what it pays.
#pragma once

#include "cli/command_line.h"
#include "cli/job/training_run.h"

namespace paceline::cli {

// --epochs, --samples, --iterations, --dataset, --phases, --evaluate, --checkpoint and --start-up.
void add_training_run_options(Command& command, job::TrainingRunOptions& options);
// --node-price of one cluster.
void add_node_price_option(Command& command, job::TrainingRunOptions& options);
void add_node_power_option(Command& command, job::TrainingRunOptions& options);

}  // namespace paceline::cli

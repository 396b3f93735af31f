// The options of `paceline train`.
#pragma once

#include "cli/command_line.h"
#include "cli/job/training.h"

namespace paceline::cli {

// Declares them on a command. `options` must outlive the parse.
void add_training_options(Command& command, job::TrainingOptions& options);

}  // namespace paceline::cli

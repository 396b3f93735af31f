// How long a job trains and what it pays, as the options of `paceline cost` say it.
#pragma once

#include <string>

#include "models/cluster/cluster.h"
#include "models/phases/phases.h"

namespace paceline::job {

// As typed; an empty text is an option that is not given.
struct TrainingRunOptions {
  std::string phases;  // a file, in place of a length, an evaluation, checkpoints and start-up
  std::string epochs;  // one of these three is the length of the one phase
  std::string samples;
  std::string iterations;
  std::string dataset;     // a name, or the samples of an epoch
  std::string evaluate;    // "50000", "50000@4 epochs"
  std::string checkpoint;  // "20s", "20s@500 iterations"
  std::string failures;    // "typical", "50000h", "50000h@10min"
  std::string spares;      // nodes
  std::string start_up;    // "90s"
  std::string node_price;  // "24.48 USD/h", or the name of an offer
  std::string node_power;  // "8 kW"
};

// The run that the options describe, or that of the document that they name. Throws InputError that
// names the option, or the file and line.
[[nodiscard]] models::TrainingRun load_training_run(const TrainingRunOptions& options);

// Puts the price and the power that the options state in place of the cluster's. Throws InputError
// that names the option.
void state_expenses(const TrainingRunOptions& options, models::Cluster& cluster);

}  // namespace paceline::job

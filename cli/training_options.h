// The options of `paceline train`, and the job that they name.
#pragma once

#include <memory>
#include <string>

#include "cli/command_line.h"
#include "cli/ranks.h"
#include "cli/threshold_options.h"
#include "models/network/network.h"
#include "models/plan/plan.h"
#include "runtime/training/data/dataset.h"
#include "runtime/training/recipe.h"

namespace paceline::cli {

// As typed; empty is "not given".
struct TrainingOptions {
  std::string model;
  std::string data;
  std::string recipe;
  std::string epochs;
  std::string batch;
  std::string learning_rate;
  std::string seed;
  std::string precision;
  std::string storage;
  std::string wire;
  std::string strategy = "fused-ring";
  ThresholdOptions thresholds;
  std::string overlap;
  std::string ranks;
  std::string threads;
  std::string workers;
  std::string patience = default_patience;
  std::string checkpoint;
  std::string checkpoint_every;
  std::string resume;
  std::string stop_after;
  std::string metrics;
  std::string timeline;
  bool json = false;
};

// Declares them on a command. `options` must outlive the parse.
void add_training_options(Command& command, TrainingOptions& options);

// The recipe that --recipe names, or the default, with what other options change.
[[nodiscard]] runtime::Recipe load_recipe(const TrainingOptions& options);

// "fp32", "mixed (bf16)".
[[nodiscard]] std::string precision_text(const runtime::Recipe& recipe);

// The plan of --strategy for this network on `ranks` ranks, `ranks_per_node` of them on one node
// (the default of --group). Throws InputError that names the option.
[[nodiscard]] models::Plan load_plan(const TrainingOptions& options, const models::Network& network,
                                     const runtime::Recipe& recipe, int ranks, int ranks_per_node);

[[nodiscard]] std::unique_ptr<runtime::Dataset> load_dataset(const TrainingOptions& options,
                                                             const models::Network& network,
                                                             const runtime::Recipe& recipe);

}  // namespace paceline::cli

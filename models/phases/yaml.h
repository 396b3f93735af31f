// Training runs as people write them (docs/formats.md, "Training run").
//
//   training: bert-large-twice            # a name
//   dataset: 2400000                      # samples of an epoch, or imagenet; where epochs are named
//   phases:
//     - {name: short, iterations: 7038, batch: 64, sequence: 128, accumulate: 2}
//     - {name: long, iterations: 1563, batch: 16, sequence: 512, precision: mixed}
//   start_up: {value: 90 s, low: 60 s, high: 3 min}
//   evaluation: {samples: 10000, every: 1000 iterations}
//   checkpoint: {time: 20 s, every: 1000 iterations}
#pragma once

#include <string>
#include <string_view>

#include "models/phases/phases.h"

namespace paceline::models {

// `file` names the text in errors. A data set that is given takes the place of the document's. Throws
// InputError with file, line and column.
[[nodiscard]] TrainingRun parse_training_yaml(std::string_view text, const std::string& file,
                                              const std::optional<Dataset>& dataset = {});

// A duration of at most `longest_duration`, in seconds. Throws InputError.
[[nodiscard]] Seconds parse_run_time(std::string_view text);
inline constexpr Seconds longest_duration{30 * 86400.0};
// The time of devices between interruptions: "50000 h", or a number of hours. Throws InputError.
[[nodiscard]] Seconds parse_device_time(std::string_view text);
inline constexpr int most_spares = 10'000;
// "best", or how often checkpoints are written. Throws InputError.
void parse_every(std::string_view text, Checkpoint& checkpoint);

}  // namespace paceline::models

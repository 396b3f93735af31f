// A training run as JSON, for tools: the document of a run that has ended, and the lines of its metrics
// (docs/formats.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "models/base/document.h"
#include "runtime/training/trainer.h"

namespace paceline::runtime {

// What is known of a job before its first iteration. It refers to what the request holds.
struct TrainingFacts {
  std::string model;
  std::string data;
  std::string transport;  // or the library that sums gradients
  std::string device;     // "cpu", or a GPU's description
  int threads_per_rank = 1;
  const Recipe& recipe;
  const models::Plan& plan;
  models::NumberType arithmetic = models::NumberType::fp32;  // of the layers
  std::string resumed_from = {};                             // the checkpoint; may be empty
};

// Metrics: one object for each event, on a line of its own, without the end of the line.
[[nodiscard]] std::string start_line(const TrainingFacts& facts);
[[nodiscard]] std::string iteration_line(const IterationReport& report);
[[nodiscard]] std::string epoch_line(const EpochReport& report);
[[nodiscard]] std::string checkpoint_line(const std::string& path, std::int64_t iteration);

struct TrainingRecord {
  TrainingFacts facts;
  const TrainingOutcome& outcome;
};
[[nodiscard]] const Document<TrainingRecord>& training_document();

// "SIGTERM", "SIGINT" and others; nothing for StopReason::none.
[[nodiscard]] std::string_view signal_name(StopReason reason);

}  // namespace paceline::runtime

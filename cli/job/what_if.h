// What-if questions about a measured run: what was typed, loaded and answered.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/compare/what_if_json.h"
#include "cli/job/job.h"

namespace paceline::job {

// As typed; an empty text is an option that is not given.
struct WhatIfOptions {
  std::string questions;  // "without-slowest,bandwidth=2,strategy=hierarchical+compute=2"
  std::string model;      // by default the network that the run names
  std::string cluster;    // that predicts what nobody measured
  std::string placement;
  std::string profile;
  std::string precision = "fp32";
  std::string sequence;
  std::string gradient_scale;
  std::string plan;  // of the run
  std::string engine = "auto";
};

// One question: what differs from the run.
struct Question {
  std::string text;  // as it was typed
  bool without_slowest = false;
  std::vector<int> without;  // ranks
  double bandwidth = 1;
  double latency = 1;
  double compute = 1;
  std::string strategy;
  std::string plan;  // a file

  // Whether a model must say what travels.
  [[nodiscard]] bool needs_model() const {
    return bandwidth != 1 || latency != 1 || !strategy.empty() || !plan.empty();
  }
};

// The questions of a list by commas, each of changes that are joined by '+'. Throws InputError.
[[nodiscard]] std::vector<Question> parse_questions(const std::string& text);

// Answers them for the run in a file. Throws InputError.
[[nodiscard]] calibration::WhatIfAnswers answer(const std::string& file,
                                                const WhatIfOptions& options);

}  // namespace paceline::job

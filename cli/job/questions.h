// What-if questions as people write them: what would be different about a run or a prediction.
#pragma once

#include <string>
#include <vector>

namespace paceline::job {

// One question: what differs from the run.
struct WhatIfQuestion {
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
[[nodiscard]] std::vector<WhatIfQuestion> parse_questions(const std::string& text);

// A list with one question, which may change only bandwidth, latency and compute. The job need not have
// been run. Throws InputError.
[[nodiscard]] WhatIfQuestion parse_better_parts(const std::string& text);

}  // namespace paceline::job

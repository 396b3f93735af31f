// What-if questions about a measured run: what was typed, loaded and answered.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/compare/what_if_json.h"
#include "cli/job/job.h"
#include "cli/job/questions.h"

namespace paceline::job {

struct WhatIfOptions {
  // As typed: "without-slowest,bandwidth=2,strategy=hierarchical+compute=2".
  std::string questions;
  // The job that ran, as far as its timeline does not say it: a model predicts what nobody measured.
  // `plan` is the run's.
  simulator::Question job;

  WhatIfOptions() { job.precision = models::Precision::fp32; }
};

// Answers them for the run in a file. Throws InputError.
[[nodiscard]] calibration::WhatIfAnswers answer(const std::string& file,
                                                const WhatIfOptions& options);
// The same for the text of such a file, with values in place of what the options name.
[[nodiscard]] calibration::WhatIfAnswers answer(const std::string& text, const std::string& file,
                                                const WhatIfOptions& options,
                                                const GivenValues& given);

}  // namespace paceline::job

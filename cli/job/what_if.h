// What-if questions about a measured run: what was typed, loaded and answered.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/compare/what_if_json.h"
#include "cli/job/job.h"
#include "cli/job/questions.h"

namespace paceline::job {

// The options of --what-if as typed. An empty text is an option that is not given.
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

// Answers them for the run in a file. Throws InputError.
[[nodiscard]] calibration::WhatIfAnswers answer(const std::string& file,
                                                const WhatIfOptions& options);
// The same for the text of such a file, with values in place of what the options name.
[[nodiscard]] calibration::WhatIfAnswers answer(const std::string& text, const std::string& file,
                                                const WhatIfOptions& options,
                                                const GivenValues& given);

}  // namespace paceline::job

// What-if answers as JSON, for tools (docs/formats.md).
#pragma once

#include <string>
#include <vector>

#include "calibration/compare/what_if.h"
#include "models/base/document.h"

namespace paceline::calibration {

// What was asked of one run, and what came out.
struct WhatIfAnswers {
  std::string file;   // of the run's timeline, as the user named it
  std::string title;  // of the run
  MeasuredRun run;
  Seconds reproduced;  // the period of the DAG with the measured durations
  std::vector<WhatIf> answers;

  // How much longer the DAG's iteration is than the measured one, as a share of that.
  [[nodiscard]] double residual() const;
};

// The residual from which on answers are said to be doubtful.
inline constexpr double doubtful_residual = 0.03;

[[nodiscard]] const Document<WhatIfAnswers>& what_if_document();

}  // namespace paceline::calibration

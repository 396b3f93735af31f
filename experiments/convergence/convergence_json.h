// What the runs of the convergence study say, as JSON (docs/formats.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/convergence/convergence.h"
#include "models/base/document.h"

namespace paceline::experiments {

// "better", "worse", "within the noise" (of two standard errors), or that one run says nothing.
[[nodiscard]] std::string_view verdict(const ClaimOutcome& outcome);

[[nodiscard]] const Document<ConvergenceRun>& run_document();
[[nodiscard]] const Document<std::vector<ConvergenceRun>>& convergence_document();
// A run on a line of its own.
[[nodiscard]] std::string to_json_line(const ConvergenceRun& run);

}  // namespace paceline::experiments

// What the runs of the convergence study say, as JSON (schema paceline.convergence/1,
// docs/formats.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/convergence/convergence.h"

namespace paceline::experiments {

// "better", "worse", "within the noise" (of two standard errors), or that one run says nothing.
[[nodiscard]] std::string_view verdict(const ClaimOutcome& outcome);

[[nodiscard]] std::string to_json(const std::vector<ConvergenceRun>& runs);

}  // namespace paceline::experiments

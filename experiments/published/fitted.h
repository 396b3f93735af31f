// What predictions take from published rows beyond the calibration of their own series.
//
// A prior may be fitted to how far predictions of published rows are off. It must then come from
// other sources than the one that is predicted: reproduce_leaving_one_out() predicts every source
// with nothing fitted, and then each of them again with what fitted_from() makes of all others.
#pragma once

#include <span>

#include "experiments/published/result.h"

namespace paceline::experiments {

// Nothing is fitted yet: all priors come from datasheets and microbenchmarks.
struct Fitted {
  bool operator==(const Fitted&) const = default;
};

// Of rows that were predicted with Fitted{}.
[[nodiscard]] Fitted fitted_from(std::span<const Reproduction* const> sources);

}  // namespace paceline::experiments

// Predicts the rows of a source: each series is calibrated on the rows that say so, and all its
// other rows are predicted from that.
#pragma once

#include <optional>

#include "experiments/published/fitted.h"
#include "experiments/published/mechanisms.h"
#include "experiments/published/result.h"
#include "experiments/published/source.h"

namespace paceline::experiments {

// What stands for rows that cannot be read or predicted.
enum class Faults {
  are_errors,  // the first is thrown
  are_listed,  // as Reproduction::failed
};

struct PredictOptions {
  Faults faults = Faults::are_errors;
  int threads = 1;
  CalibrationPoints points = CalibrationPoints::two;
  // Takes the place of what the effects of each cluster have, as a fit to other sources does.
  std::optional<Unexplained> unexplained = {};
  const Mechanism* without = nullptr;  // what the prediction leaves out; null: nothing
};

// Throws InputError.
[[nodiscard]] Reproduction predict_source(const Source& source, const PredictOptions& options);

}  // namespace paceline::experiments

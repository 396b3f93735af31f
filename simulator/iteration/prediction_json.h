// A prediction as JSON: an entry of "strategies" in the documents paceline.prediction/1 and
// paceline.scaling/1 (docs/formats.md).
#pragma once

#include <string>

#include "simulator/iteration/prediction.h"

namespace paceline::simulator {

// One JSON object, on one line.
[[nodiscard]] std::string to_json(const StrategyPrediction& prediction);

}  // namespace paceline::simulator

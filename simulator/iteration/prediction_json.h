// A prediction as JSON: an entry of "strategies" in the documents paceline.prediction/1 and
// paceline.scaling/1 (docs/formats.md).
#pragma once

#include "models/base/json.h"
#include "simulator/iteration/prediction.h"

namespace paceline::simulator {

[[nodiscard]] Json json_of(const StrategyPrediction& prediction);

}  // namespace paceline::simulator

// A row of a table of predictions as documents have it (docs/formats.md).
#pragma once

#include "models/base/document.h"
#include "simulator/prediction/prediction.h"

namespace paceline::simulator {

[[nodiscard]] const Document<StrategyPrediction>& prediction_document();

}  // namespace paceline::simulator

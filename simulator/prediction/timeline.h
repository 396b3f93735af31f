// The timeline of a prediction: every task of two iterations of the steady state.
#pragma once

#include <string>

#include "models/timeline/timeline.h"
#include "simulator/prediction/prediction.h"

namespace paceline::simulator {

// Events of a track never overlap: a resource runs one task at a time.
[[nodiscard]] models::Timeline predicted_timeline(const StrategyRun& run, std::string title);

}  // namespace paceline::simulator

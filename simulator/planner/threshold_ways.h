// The search behind resolve_thresholds(): every way in which a strategy of ours can be parametrised.
#pragma once

#include "simulator/planner/planning_job.h"

namespace paceline::simulator {

// Completes `chosen.thresholds`, in which k stands where it was named or else default_group(), by k,
// segments, eta and theta as thresholds.h says, and the rest of `chosen`.
void choose_way(const models::Strategy& strategy, const ThresholdRequest& asked,
                const PlanningJob& job, const PlanningTimers& timers, ChosenThresholds& chosen);

}  // namespace paceline::simulator

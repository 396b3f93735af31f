// Whether a run and a prediction may be held against each other.
#pragma once

#include "models/timeline/timeline.h"

namespace paceline::calibration {

// Throws InputError, which says what to predict instead, unless the first is a run, the second a
// prediction, and both are of one job: the same layers, ranks, batch (where both say it), type on
// the wire, overlap and buckets. Strategies and streams may differ.
void check_same_job(const models::TracedTimeline& run, const models::TracedTimeline& prediction);

}  // namespace paceline::calibration

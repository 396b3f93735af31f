// Whether a run and a prediction may be held against each other.
#pragma once

#include <string>

#include "models/plan/plan_json.h"
#include "models/timeline/timeline.h"

namespace paceline::calibration {

// Throws InputError unless the timeline is of a run, with a forward pass and with iterations that start
// one after the other.
void check_run(const models::Timeline& run);

// Throws InputError, which says what to predict instead, unless the first is a run, the second a
// prediction, and both are of one job: the same layers, ranks, batch (where both say it), type on
// the wire, overlap and buckets. Strategies and streams may differ.
void check_same_job(const models::TracedTimeline& run, const models::TracedTimeline& prediction);

// Throws InputError that names `file`, the timeline's, and says what is different, unless its job
// followed the plan: its network, ranks, strategy, wire type, overlap and streams, and bucket by
// bucket the gradients, the bytes and the all-reduce with its options.
void check_follows(const models::TracedJob& job, const std::string& file,
                   const models::PlanDocument& plan);

}  // namespace paceline::calibration

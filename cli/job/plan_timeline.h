// The timeline of a plan that was predicted, as a document (docs/formats.md, paceline.timeline/1).
#pragma once

#include <string>

#include "cli/job/prediction_table.h"
#include "models/timeline/timeline.h"

namespace paceline::job {

// The timeline of a plan for the network and the ranks of the table: every task of two iterations of
// the steady state. `name` says in its title what the plan is. Predicts the plan anew, which takes as
// long as one row.
[[nodiscard]] models::TracedTimeline traced_timeline(const PredictionTable& table,
                                                     const models::Plan& plan,
                                                     const std::string& name);
// Its document.
[[nodiscard]] std::string plan_timeline(const PredictionTable& table, const models::Plan& plan,
                                        const std::string& name);

// The same for the best row.
[[nodiscard]] std::string best_timeline(const PredictionTable& table);

}  // namespace paceline::job

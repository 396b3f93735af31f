// The timeline of a plan that was predicted, as a document (docs/formats.md, paceline.timeline/1).
#pragma once

#include <string>

#include "cli/job/prediction_table.h"

namespace paceline::job {

// Of a plan for the network and the ranks of the table; `name` says in its title what the plan is.
// Predicts the plan anew, which takes as long as one row.
[[nodiscard]] std::string plan_timeline(const PredictionTable& table, const models::Plan& plan,
                                        const std::string& name);

// Of the best row.
[[nodiscard]] std::string best_timeline(const PredictionTable& table);

}  // namespace paceline::job

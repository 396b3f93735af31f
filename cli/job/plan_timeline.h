// The timeline of a plan that was predicted, as a document (docs/formats.md, paceline.timeline/1).
#pragma once

#include <string>

#include "cli/job/prediction_table.h"
#include "models/timeline/timeline.h"

namespace paceline::job {

// The timeline of a row of the table: every task of two iterations of the steady state, with the
// interval of its iteration where the period is the row's own (compute times that vary have a longer
// mean). A row that has not kept its run is predicted anew.
[[nodiscard]] models::TracedTimeline row_timeline(const PredictionTable& table,
                                                  const simulator::StrategyPrediction& row);
// The document of the timeline of the best row.
[[nodiscard]] std::string best_timeline(const PredictionTable& table);

// The same of a plan for the network and the ranks of the table, which is predicted anew. `name` says
// in its title what the plan is.
[[nodiscard]] std::string plan_timeline(const PredictionTable& table, const models::Plan& plan,
                                        const std::string& name);

}  // namespace paceline::job

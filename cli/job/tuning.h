// What `paceline tune` prints: the best plan that is found for a job, beside the table of strategies.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/job/prediction_table.h"
#include "simulator/iteration/bucket_travel.h"
#include "simulator/iteration/tuned_plan.h"

namespace paceline::job {

struct Tuning {
  PredictionTable table;                     // of the strategies that it is compared with
  simulator::TunedPlan tuned;                // of the wire type with which it is fastest
  simulator::PlanTravel travel;              // of its steady iteration
  std::optional<std::size_t> by_thresholds;  // the fastest row of a strategy that thresholds drive

  // The gain: by how much the row's iteration is longer than the plan's, as a share of the plan's.
  [[nodiscard]] double gain_over(const simulator::StrategyPrediction& row) const {
    return row.iteration.value / tuned.period - 1;
  }
};

// Leaves out strategies whose buckets share links in flight, which the step engine does not see, where
// that engine is asked for and the user named no strategies. To be called before tune_job().
void leave_out_untimed(Job& job);

struct TuningObserver {
  TableObserver table = {};
  // Called after each plan that the search looks at.
  std::function<void(const simulator::TuningProgress& progress)> search = {};
  // Asked between plans: whether to stop the search.
  std::function<bool()> stop = {};
};

// Plans of one in-order stream; --overlap holds, and thresholds that are given hold for the table. The
// search begins with the planner's optimum and with the plan of every row that our runtime can run and
// that no substitute of its engine timed, so that the result is none slower than these. Throws
// InputError as predict_table() does, and if the job names a plan, several streams, stragglers or more
// networks than one.
[[nodiscard]] Tuning tune_job(const Job& job, int ranks, const TuningObserver& observer = {});

// The document paceline.tuning/1 (docs/formats.md).
[[nodiscard]] std::string to_json(const Tuning& tuning);

}  // namespace paceline::job

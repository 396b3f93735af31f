// The run of a plan on a job: its DAG and its steady iteration.
#pragma once

#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "simulator/iteration/dag.h"
#include "simulator/iteration/steady_state.h"
#include "simulator/iteration/timing_method.h"
#include "simulator/prediction/job_settings.h"
#include "simulator/prediction/ways/way_model.h"

namespace paceline::simulator {

// One strategy, with what the timeline needs.
struct StrategyRun {
  models::Plan plan;
  IterationDag dag;
  SteadyIteration steady;
  TimingMethod method;
  std::vector<BucketTimes> buckets;  // the times of each, as if it were alone
  std::string timed_by;              // as in StrategyPrediction
  std::string compute_source;
};

// Runs the plan at a setting of the job. Throws InputError where a schedule is too large for the engine.
[[nodiscard]] StrategyRun run_of(const JobSettings& job, models::Plan plan, PredictorSetting& at);

// A plan of the job for its model.
[[nodiscard]] PlanAt plan_at(const JobSettings& job, const models::Plan& plan, TimingMethod method,
                             PredictorSetting& at);

}  // namespace paceline::simulator

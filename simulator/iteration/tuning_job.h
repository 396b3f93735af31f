// What a plan is tuned for.
#pragma once

#include <functional>
#include <string>

#include "models/plan/plan.h"
#include "simulator/planner/planning_job.h"

namespace paceline::simulator {

// What tune() needs of a job; Predictor::tune() makes it.
struct TuningJob {
  PlanningJob planning;
  PlanningTimers timers;
  models::Overlap overlap = models::Overlap::wait_free;
  // With several streams the search begins with the optimum of one stream, and nothing is proven.
  int streams = 1;
  // Whether the DAG is what the planner's clock says; else why not.
  std::string clock_differs = {};
  std::function<Seconds(const models::Plan&)> period = {};  // by the DAG
  Seconds least_other{};  // the period is at least this for another reason, such as input
};

}  // namespace paceline::simulator

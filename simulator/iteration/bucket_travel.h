// When the buckets of a plan travel in the steady iteration, and for how much of it computation
// stands still: what people look at to see why a plan takes as long as it does.
#pragma once

#include <vector>

#include "models/plan/plan.h"
#include "simulator/iteration/dag.h"
#include "simulator/iteration/steady_state.h"

namespace paceline::simulator {

// Times count from the start of the iteration's forward pass.
struct BucketTravel {
  Seconds ready;    // its last gradient is there
  Seconds start;    // the first of its tasks on a communication stream
  Seconds end;      // the last of them
  Seconds exposed;  // of the time between, what the compute stream stands still
};

struct ComputeSpan {
  TaskKind kind = TaskKind::forward;
  int layer = 0;  // of forward and backward
  Seconds start;
  Seconds end;
};

// In a pipeline, compute times are those of the stage that computes longest.
struct PlanTravel {
  Seconds period;
  std::vector<BucketTravel> buckets;  // one for each of the plan's; all 0 on one rank
  std::vector<ComputeSpan> compute;   // of one iteration, in the order of time; none takes no time
  std::vector<ComputeSpan> idle;      // within a period, where the compute stream stands still
};

// Of a DAG that was made for the plan. O(tasks log tasks + buckets x idle spans).
[[nodiscard]] PlanTravel plan_travel(const models::Plan& plan, const IterationDag& dag,
                                     const SteadyIteration& steady);

}  // namespace paceline::simulator

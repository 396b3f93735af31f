// All-reduces as the executor runs them: each rank starts them in order, at its own time.
#pragma once

#include "models/plan/plan.h"
#include "simulator/engine/executor_engine.h"
#include "simulator/iteration/dag.h"

namespace paceline::simulator {

// Times the all-reduces of a DAG in which the update waits for all buckets, on any number of
// streams: ranks start a bucket when their own part of the one before it on its stream is done, and
// the next iteration when their own update is, and need not wait for each other. Iterations are
// run, each from idle links, until one takes as long as the one before. A bucket's duration is then
// the time from where the DAG lets it start, at the earliest the end of the one before, to its end
// on rank 0, in the mean of two iterations.
//
// The engine must have been made for plan.schedules. Cost: eight times the engine's, at most.
[[nodiscard]] IterationDag with_ordered_collectives(const IterationDag& dag,
                                                    const models::Plan& plan,
                                                    ExecutorEngine& engine);

}  // namespace paceline::simulator

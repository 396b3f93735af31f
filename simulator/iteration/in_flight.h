// All-reduces of an iteration that are in flight together: how long each takes where they share
// links with each other.
#pragma once

#include <vector>

#include "models/plan/plan.h"
#include "simulator/engine/executor_engine.h"
#include "simulator/engine/shared_links.h"
#include "simulator/iteration/dag.h"

namespace paceline::simulator {

// Runs the DAG, unrolled, with the engine in place of the durations of its all-reduces, from rest
// until an iteration is like the one before, or `most` iterations; one will do where the update
// waits for all buckets, for then none is in flight with those of the next iteration. Returns the
// DAG with the durations of the last iteration, which its steady state then rests on.
// The engine must have been made for plan.schedules.
[[nodiscard]] IterationDag with_buckets_in_flight(const IterationDag& dag, const models::Plan& plan,
                                                  SharedLinkEngine& engine, int most = 16);

// The same for the executor, on any number of streams, where the update waits for all buckets:
// ranks start a bucket when their own part of the one before it on its stream is done, and the next
// iteration when their own update is, and need not wait for each other. Iterations are run, each
// from idle links, until one takes as long as the one before. A bucket's duration is then the time
// from where the DAG lets it start, at the earliest the end of the one before, to its end on rank
// 0, in the mean of two iterations.
[[nodiscard]] IterationDag with_buckets_in_order(const IterationDag& dag, const models::Plan& plan,
                                                 ExecutorEngine& engine);

}  // namespace paceline::simulator

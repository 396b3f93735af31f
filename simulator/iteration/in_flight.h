// All-reduces of an iteration that are in flight together: how long each takes where they share
// links with each other.
#pragma once

#include "models/plan/plan.h"
#include "simulator/engine/network_engine.h"
#include "simulator/iteration/dag.h"

namespace paceline::simulator {

// Runs the DAG, unrolled, with the engine in place of the durations of its all-reduces, from rest
// until an iteration is like the one before, or `most` iterations; one will do where the update
// waits for all buckets, for then none is in flight with those of the next iteration. Returns the
// DAG with the durations of that iteration, which its steady state then rests on. Where no iteration
// is like the one before, as where communication falls behind and iterations take turns, durations
// are the means over the last of them, stretched so that the period is the mean of theirs.
// The engine must have been made for plan.schedules.
[[nodiscard]] IterationDag with_buckets_in_flight(const IterationDag& dag, const models::Plan& plan,
                                                  NetworkEngine& engine, int most = 32);

}  // namespace paceline::simulator

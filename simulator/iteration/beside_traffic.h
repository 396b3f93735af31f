// Computation that messages slow down: on a CPU, what travels takes cores and memory from the
// layers that run at the same time. How much is calibrated, for each layer: its time alone, and its
// time while messages travel all along.
//
// The rule: while at least one all-reduce is on its way, a pass goes on at (time alone / time
// beside traffic) of its speed, and at full speed otherwise. So a pass of time a alone and b beside
// traffic that has traffic for c of its time takes a + c (1 - a / b).
#pragma once

#include <vector>

#include "simulator/cost/compute_time.h"
#include "simulator/iteration/dag.h"
#include "simulator/iteration/steady_state.h"

namespace paceline::simulator {

// What layers take by that rule, with traffic when the all-reduces of `steady` are on their way,
// those of iterations before included. Those that wait for the pass itself are none beside it.
// `compute` has times beside traffic, and those alone, whatever the DAG was made with. O(tasks x
// all-reduces).
[[nodiscard]] std::vector<LayerTime> layers_beside_traffic(const IterationDag& dag,
                                                           const SteadyIteration& steady,
                                                           const ComputeTimes& compute);

}  // namespace paceline::simulator

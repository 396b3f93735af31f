// Computation that messages slow down: on a CPU, what travels takes cores and memory from the
// layers that run at the same time. How much is calibrated, for each layer: its time alone, and its
// time while messages travel all along.
//
// On a GPU, kernels of a collective take multiprocessors and memory from it (simulator/cost/losses.h).
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

// What layers take by that rule. One iteration is followed from task to task, with all-reduces as
// long as the DAG has them, and those of the iterations before as `steady` has them. `compute` has
// times beside traffic, and those alone, whatever the DAG was made with; it may let kernels alone slow
// layers down. O(tasks x all-reduces that are on their way at once).
[[nodiscard]] std::vector<LayerTime> layers_beside_traffic(const IterationDag& dag,
                                                           const SteadyIteration& steady,
                                                           const ComputeTimes& compute);

}  // namespace paceline::simulator

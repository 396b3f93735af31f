// Computation that messages slow down: on a CPU, what travels takes cores and memory from the
// layers that run at the same time. How much is calibrated, for each layer: its time alone, and its
// time while messages travel all along.
//
// On a GPU, kernels of a collective take multiprocessors and memory from it (simulator/cost/losses.h).
//
// The rule: under full load, a pass goes on at (time alone / time beside traffic) of its speed, at full
// speed where nothing is on its way, and in between under a part of the load, which is the sum of those
// of all collectives that are on their way, at most 1 (TrafficLoad in compute_time.h: where layers were
// measured beside traffic, whatever is on its way is the full load). So a pass of time a alone and b
// beside traffic that has a load of x for c of its time takes a + c x (1 - a / b).
//
// A collective that is on its way for T takes full(bytes, T) (1 - a / b) of computation if all of it
// is beside passes, which grows with T. Of two links, that on which it ends sooner takes no more.
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

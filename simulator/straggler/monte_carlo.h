// Iterations with stragglers: the iteration DAG unrolled for every rank, with compute times drawn.
//
// SEMANTICS. In iteration i all tasks of rank r on the compute stream (forward, backward, update)
// take f(i, r) times as long as the DAG says. Input tasks belong to their rank and are not
// slowed. Tasks on communication streams are common to all ranks and take what the DAG says.
// Everything else is the DAG's: policies are its edges, so under double buffering a rank
// may run ahead of others by as much as these allow.
//
//   An all-reduce (with its cast and pack) waits for its gradients at all p ranks: the maximum.
//
//   With b backup ranks it waits for the first n = p - b ranks: the n-th order statistic (Chen et
//   al. 2016, "Revisiting distributed synchronous SGD": update as soon as the first n of n + b
//   gradients have arrived). The others send zeros in their place, because a collective runs over all
//   p ranks: its time is that over p. A rank that has not finished its gradients when the last
//   bucket of its iteration sets out drops what is left of its batch, and goes on with the update
//   like the others. (The paper's late workers send their gradients to a parameter server,
//   which drops them, and may so be late for the next one, too.)
//
// An iteration lasts from one update to the next: between the moments at which n ranks have
// updated, or where buckets are updated one by one, at which the last bucket is.
#pragma once

#include <cstdint>
#include <vector>

#include "models/straggler/stragglers.h"
#include "simulator/iteration/dag.h"

namespace paceline::simulator {

struct MonteCarloRequest {
  models::Stragglers stragglers;
  int iterations = 1000;  // at least 2
  std::uint64_t seed = 1;
};

// How many iterations are left out before this many are counted: as many as a tenth of them, and 20 more.
[[nodiscard]] int left_out_iterations(int iterations);

// Durations of consecutive iterations. Starts from the steady state of ranks that all take the mean
// of the n-th order statistic, and leaves out left_out_iterations(). stragglers.backup must be less than
// `ranks`.
//
// Cost of an iteration: O(ranks x (1 + tasks that compute waits with) + tasks), for between two
// waits a rank's times are a line in f, and only the ranks that are among the last b + 1 at either
// end can be so in between.
[[nodiscard]] std::vector<Seconds> iteration_times(const IterationDag& dag, int ranks,
                                                   const MonteCarloRequest& request);

}  // namespace paceline::simulator

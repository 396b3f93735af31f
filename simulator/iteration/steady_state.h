// The steady state of an iteration DAG: unrolled until one iteration is like the one before.
#pragma once

#include <vector>

#include "models/base/to_size.h"
#include "simulator/iteration/dag.h"

namespace paceline::simulator {

// One iteration of the steady state. Times count from the start of the first of `iterations`.
struct SteadyIteration {
  Seconds period;         // from one update to the next
  int iterations = 0;     // unrolled, this one included
  bool converged = true;  // false: `period` is the longest step of any task in the last iteration
  std::vector<Seconds> start;            // of each task, in this iteration
  std::vector<Seconds> previous_finish;  // of each task, one iteration before
  std::vector<int>
      binding;  // index into IterationDag::into() of the dependency that set the start; -1: none

  [[nodiscard]] Seconds finish(const IterationDag& dag, int task) const {
    return start[to_size(task)] + dag.tasks()[to_size(task)].duration;
  }
};

// Starts from rest and unrolls until every task's start moves by the same period (a max-plus
// system stays there), or `most` iterations. While resources move at steady but different rates, as
// a communication stream that falls behind, iterations are skipped up to where one first waits for
// another. O(iterations x (tasks + dependencies)).
[[nodiscard]] SteadyIteration steady_state(const IterationDag& dag, int most = 64);

// Where an iteration's time went on the compute stream; of a pipeline, on that of busiest_stage(). compute +
// exposed_communication + input_wait = the period.
struct TimeSpent {
  Seconds compute;                // forward, backward, update, and what K-FAC computes
  Seconds update;                 // the part of compute that is the update
  Seconds exposed_communication;  // the compute stream waits for gradients
  Seconds input_wait;             // the compute stream waits for a batch
  Seconds communication;          // a communication stream is busy
  // These are parts of exposed_communication in a layout of several axes. The rest of it belongs to data
  // parallelism.
  Seconds exchange;  // the compute stream waits for ranks of the same sample
  Seconds bubble;    // or for another stage
};
// The stage whose rank computes, and exchanges with ranks of the same sample, longest; 0 without a pipeline.
[[nodiscard]] int busiest_stage(const IterationDag& dag);
[[nodiscard]] TimeSpent time_spent(const IterationDag& dag, const SteadyIteration& steady);

// A task on the critical path, `iteration` 0 for the steady one and -1, -2... for those before.
struct CriticalTask {
  int task = 0;
  int iteration = 0;
};
struct CriticalPath {
  std::vector<CriticalTask> tasks;  // in time order; empty if there is no steady state
  int periods = 1;                  // that it spans: more than one where iterations overlap
};
// The chain of tasks, each of which started the moment the one before it was done, that closes on
// itself: going back from the last update, the first circle. Its durations sum to `periods`
// periods.
[[nodiscard]] CriticalPath critical_path(const IterationDag& dag, const SteadyIteration& steady);

}  // namespace paceline::simulator

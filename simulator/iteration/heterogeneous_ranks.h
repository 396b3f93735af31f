// The period of an iteration DAG whose ranks take times of their own, each the same in every
// iteration, as they are measured.
//
// Tasks on communication streams are common to all ranks: they begin when what they wait for is done
// on all of them, and take what the DAG says. All other tasks belong to their rank. So it is what
// simulator/straggler does with random factors, for durations that are known task by task.
#pragma once

#include <span>
#include <vector>

#include "simulator/iteration/dag.h"

namespace paceline::simulator {

// durations[r][t] is the time of task t on rank r; those of common tasks are not read. At least one
// rank. Unrolls from rest until every task of every rank moves by the same time, or `most` iterations:
// then it is the longest step of a task. With equal ranks it is steady_state().period.
// O(iterations x ranks x (tasks + dependencies)).
[[nodiscard]] Seconds period_of_ranks(const IterationDag& dag,
                                      std::span<const std::vector<Seconds>> durations,
                                      int most = 64);

}  // namespace paceline::simulator

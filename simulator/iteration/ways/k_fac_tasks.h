// The tasks of an iteration with K-FAC (models/plan/k_fac.h), which has five stages and an update:
//   1  forward, with the factor A of each layer after its forward pass
//   2  backward, with the factor G of each layer before its backward pass. A is scattered beside it
//   3  the reduce-scatter of G and gradients after the backward pass; without overlap also of A
//   4  the owner inverts the factors of its layers and preconditions their gradients
//   5  the all-gather of the preconditioned gradients, for which the update waits
// Stage 4 is that of the owner that takes longest.
#pragma once

#include "simulator/iteration/dag_builder.h"

namespace paceline::simulator {

// Adds the factor of a layer after its forward pass (A) or before its backward pass (G).
void add_factor(const KfacTimes& times, TaskKind factor, std::size_t layer, DagBuilder& dag);

// Adds stages 3 to 5, and the part of stage 2 that travels, after both passes.
void add_k_fac(const KfacTimes& times, DagBuilder& dag);

}  // namespace paceline::simulator

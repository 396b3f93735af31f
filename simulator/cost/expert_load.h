// The work of the rank whose experts have most tokens over the mean of all ranks, which wait for it.
//
// With a loss that balances experts it is taken to be 1.15, between 1.0 and 1.6 (assumed; docs/sources.md, kernels
// of transformers).
#pragma once

#include "models/base/figure.h"
#include "simulator/cost/communication_cost.h"

namespace paceline::simulator {

inline double expert_load(Bound bound) {
  constexpr double fast = 1.0;
  constexpr double stated = 1.15;
  constexpr double slow = 1.6;
  return bound == Bound::fast ? fast : bound == Bound::slow ? slow : stated;
}

}  // namespace paceline::simulator

// How much more than the mean the rank does whose experts have most tokens, which all others wait for.
//
// A loss that balances experts leaves 1.15 in the median of what is reported, and 1.0 to 1.6 (assumed;
// docs/sources.md, kernels of transformers).
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

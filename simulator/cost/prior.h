// A prior: a plain number in base units, with its interval, where no cluster or profile says better.
#pragma once

#include "simulator/cost/communication_cost.h"

namespace paceline::simulator {

struct Prior {
  double value, low, high;
};

// `faster_if_larger` says which end of the interval is the fast one.
[[nodiscard]] constexpr double read_prior(const Prior& prior, Bound bound, bool faster_if_larger) {
  if (bound == Bound::stated) return prior.value;
  return (bound == Bound::fast) == faster_if_larger ? prior.high : prior.low;
}

}  // namespace paceline::simulator

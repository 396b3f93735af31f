// How much slower the links of a cluster are than their figures say, as all-reduces that were
// measured on it show.
#pragma once

#include "simulator/cost/communication_cost.h"

namespace paceline::simulator {

// Factors on stated figures. All-reduces inside a node say nothing of the network; those between
// nodes do not tell the node's share from the network's, and slow down both.
struct Pace {
  double latency = 1;   // alpha, and what a library takes before its first byte
  double transfer = 1;  // beta of ports and NICs; what ranks share otherwise keeps its rate
  bool is_measured = false;
  bool between_nodes = false;
  double doublings = 0;  // |log2(ranks of the job / ranks that were measured)|
};

// The bound of figures that a pace multiplies. It is the stated one if the pace was measured, because
// the pace then has the interval.
[[nodiscard]] constexpr Bound node_bound(const Pace& pace, Bound bound) {
  return pace.is_measured ? Bound::stated : bound;
}
[[nodiscard]] constexpr Bound network_bound(const Pace& pace, Bound bound) {
  return pace.is_measured && pace.between_nodes ? Bound::stated : bound;
}

// communication_cost() at that pace.
[[nodiscard]] CommunicationCost paced_cost(const models::Cluster& cluster,
                                           const models::Profile* profile, Bound bound, int ranks,
                                           const Pace& pace);

}  // namespace paceline::simulator

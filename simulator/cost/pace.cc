// Tests: tests/simulator/measured_all_reduce_test.cc.
#include "simulator/cost/pace.h"

namespace paceline::simulator {
namespace {

void slow_down(LinkCost& link, const Pace& pace) {
  link.alpha *= pace.latency;
  link.beta *= pace.transfer;
}

}  // namespace

CommunicationCost paced_cost(const models::Cluster& cluster, const models::Profile* profile,
                             Bound bound, int ranks, const Pace& pace) {
  CommunicationCost cost = communication_cost(cluster, profile, bound, ranks);
  if (!pace.is_measured) return cost;
  const CommunicationCost stated = communication_cost(cluster, profile, Bound::stated, ranks);
  cost.intra = stated.intra;
  slow_down(cost.intra, pace);
  if (!pace.between_nodes && cluster.has_nic()) return cost;
  cost.nic = stated.nic;
  slow_down(cost.nic, pace);
  return cost;
}

}  // namespace paceline::simulator

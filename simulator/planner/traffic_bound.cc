// Tests: tests/simulator/traffic_bound_test.cc.
#include "simulator/planner/traffic_bound.h"

#include <algorithm>

#include "models/base/error.h"

namespace paceline::simulator {

SecondsPerByte least_time_of_a_byte(const CommunicationCost& cost, int ranks) {
  if (ranks <= 1 || cost.platform != nullptr) return SecondsPerByte{0};
  const int nodes = (ranks - 1) / cost.ranks_per_node + 1;
  const auto share = [](int of) { return 2.0 * (of - 1) / of; };
  if (nodes > 1) {
    double links = cost.nics_per_node;
    // A node of a torus has a link to each neighbour in the place of NICs.
    if (cost.fabric.kind == models::FabricKind::torus)
      links *= 2.0 * static_cast<double>(cost.fabric.shape.size());
    return share(nodes) * cost.nic.beta / links;
  }
  if (!cost.slots.empty() || cost.placement != models::Placement::node_major)
    return SecondsPerByte{0};
  double links = 1;  // that a rank has into its node
  if (cost.intra_kind == models::IntraKind::ring) links = 2;
  if (cost.intra_kind == models::IntraKind::all_to_all) links = cost.ranks_per_node - 1;
  return share(ranks) * cost.intra.beta / std::max(1.0, links);
}

Seconds least_latency(const CommunicationCost& cost, int ranks) {
  if (ranks <= 1 || cost.platform != nullptr || cost.transport) return Seconds{0};
  if (ranks <= cost.ranks_per_node && cost.placement == models::Placement::node_major)
    return cost.intra.alpha;
  return std::min(cost.intra.alpha, cost.nic.alpha);
}

double least_start_of_update_s(const StreamClock& clock, std::span<const std::int64_t> sums,
                               double element_bytes, const LeastTraffic& traffic) {
  PACELINE_ASSERT(sums.size() == clock.ready_s.size() + 1, "every gradient has its ready time");
  double start_s = clock.computed_s;
  if (clock.ready_s.empty()) return start_s;
  const auto links_taken_s = [&](std::size_t first) {
    return static_cast<double>(sums.back() - sums[first]) * element_bytes * traffic.s_per_byte;
  };
  for (std::size_t i = 0; i < clock.ready_s.size(); ++i) {
    const double through_s = clock.ready_s[i] + links_taken_s(i);
    start_s = std::max(start_s, traffic.ranks_are_late ? (through_s + clock.ready_s.back()) / 2
                                                       : through_s + traffic.before_s);
  }
  return start_s;
}

double least_period_of_priorities_s(const StreamClock& clock, std::span<const std::int64_t> sums,
                                    double element_bytes, const LeastTraffic& traffic,
                                    int streams) {
  PACELINE_ASSERT(
      sums.size() == clock.ready_s.size() + 1 && clock.forward_s.size() == clock.ready_s.size(),
      "every gradient has its times");
  double period_s = clock.computed_s;
  const double update_s = streams == 1 ? clock.update_s : 0;
  const auto all = static_cast<double>(sums.back());
  for (std::size_t i = 0; i < clock.ready_s.size(); ++i) {
    const auto elements = static_cast<double>(sums.back() - sums[i]);
    period_s = std::max(period_s, clock.ready_s[i] - clock.forward_s[i] + traffic.before_s +
                                      elements * element_bytes * traffic.s_per_byte +
                                      update_s * (elements / all));
  }
  // Several streams hide latencies, behind those of the next iteration, too.
  const double before_s = streams == 1 ? traffic.before_s : 0;
  return std::max(period_s, before_s + all * element_bytes * traffic.s_per_byte + update_s);
}

}  // namespace paceline::simulator

// Which slot (cluster.h) each rank sits in.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/cluster/cluster.h"

namespace paceline::models {

[[nodiscard]] constexpr int node_of(int rank, int ranks_per_node) {
  return rank / ranks_per_node;
}
[[nodiscard]] constexpr int slot_of(int rank, int ranks_per_node) {
  return rank % ranks_per_node;
}

inline constexpr std::array<std::pair<Placement, std::string_view>, 2> placements = {
    {{Placement::node_major, "node-major"}, {Placement::round_robin, "round-robin"}}};

[[nodiscard]] std::string_view name(Placement placement);
// Throws InputError that lists the names.
[[nodiscard]] Placement placement_from_name(std::string_view text);
// Throws InputError unless the slots are distinct and slots of the cluster.
void check_slots(const std::vector<int>& slots, const Cluster& cluster);
// "node-major", "round-robin", or the first few slots of a list.
[[nodiscard]] std::string described_placement(const Cluster& cluster);

// The slot of each of the first `ranks` ranks: as listed, or by the placement (cluster.h).
[[nodiscard]] std::vector<int> slots_of_ranks(const std::vector<int>& listed, Placement placement,
                                              int ranks_per_node, int ranks);
// The ranks of each node that has some, in ascending order; nodes in the order of their first ranks.
[[nodiscard]] std::vector<std::vector<int>> ranks_by_node(const std::vector<int>& slots,
                                                          int ranks_per_node);
[[nodiscard]] std::vector<std::vector<int>> ranks_by_node(const Cluster& cluster, int ranks);
// The slots of each such node, in the same order.
[[nodiscard]] std::vector<std::vector<int>> slots_by_node(const std::vector<int>& slots,
                                                          int ranks_per_node);

// How many nodes these ranks are on; of more ranks than are listed, as many as they fill.
[[nodiscard]] int used_nodes(const Cluster& cluster, int ranks);

// How many of a node's n NICs stand beside its ranks in these slots, of g in a node: NIC p n div g is that of
// place p, and where there are more NICs than places, NIC j that of place j g div n.
[[nodiscard]] int nics_beside(const std::vector<int>& slots_of_node, int nics_per_node,
                              int ranks_per_node);

// How many hosts: nodes, where each is one.
[[nodiscard]] int used_hosts(const Cluster& cluster, int ranks);

// How many ranks have a slot in the cluster.
[[nodiscard]] int placed_ranks(const Cluster& cluster);

// Throws InputError unless 1 <= ranks <= cluster.ranks() and each rank has a slot.
void check_ranks(const Cluster& cluster, std::int64_t ranks);

}  // namespace paceline::models

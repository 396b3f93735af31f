// Slots that links do not tell apart: what a cluster calls node 5, or place 3 of a node, changes no time
// where all nodes, or all places, are joined alike.
#pragma once

#include <map>
#include <vector>

#include "models/cluster/cluster.h"

namespace paceline::models {

struct AlikeSlots {
  std::vector<int> slots;            // of each rank
  std::map<int, double> slow_nodes;  // those that a rank is on, as in Cluster
};

// The listed slots of a cluster, and its slow nodes with them, renumbered in the order in which ranks
// meet them, as far as the cluster looks the same afterwards:
//   nodes             of a flat fabric and of rails; of a fat tree under one switch, and its switches
//                     under one switch above them; not of a torus
//   places of a node  behind one NIC, PCIe switch and socket; and these among themselves, except for NICs
//                     of rails. Not where the node is a ring, nor where places are not shared out equally
// So two placements that differ by such names alone become one. The hosts of a platform keep their
// numbers. O(listed slots x levels).
[[nodiscard]] AlikeSlots alike_slots(const Cluster& cluster);

}  // namespace paceline::models

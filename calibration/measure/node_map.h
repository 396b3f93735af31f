// Which ranks of a job share a node, and which nodes share a leaf switch.
#pragma once

#include <string>
#include <vector>

#include "runtime/transport/transport.h"

namespace paceline::calibration {

// Ranks that say the same of their node share it.
struct NodeMap {
  std::vector<int> node;  // of each rank, numbered from 0 by their first rank
  // Nodes under one switch, in order; 0: all. What is measured of a NIC then stays under a switch,
  // since the bandwidth of an oversubscribed uplink is not the NIC's.
  int nodes_per_leaf = 0;
  [[nodiscard]] int nodes() const;
  // The ranks of a node, ascending.
  [[nodiscard]] std::vector<int> ranks_of(int node) const;
  // The first rank of each node.
  [[nodiscard]] std::vector<int> leaders() const;
  // The first ranks of the nodes under the switch of this rank's node, if this rank is the first of
  // its node. They are those of all nodes where a switch has one node only. Empty for other ranks,
  // and for a node that is alone under the last switch.
  [[nodiscard]] std::vector<int> leaders_beside(int rank) const;
  // The first rank of a node and the one in the same place of the other leaf of its pair (leaves 0
  // and 1, 2 and 3, ...), ascending. Empty for other ranks, where a switch has one node or all, and
  // where one of the two leaves is not full.
  [[nodiscard]] std::vector<int> leaders_across(int rank) const;
};

// All ranks call it. `host` names this rank's own node, such as its host name.
[[nodiscard]] NodeMap find_nodes(runtime::Transport& transport, const std::string& host);

}  // namespace paceline::calibration

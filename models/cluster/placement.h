// Where ranks are: node-major, rank r is slot r mod g of node r div g.
#pragma once

#include <cstdint>

#include "models/cluster/cluster.h"

namespace paceline::models {

[[nodiscard]] constexpr int node_of(int rank, int ranks_per_node) {
  return rank / ranks_per_node;
}
[[nodiscard]] constexpr int slot_of(int rank, int ranks_per_node) {
  return rank % ranks_per_node;
}

// Throws InputError unless 1 <= ranks <= the cluster's.
void check_ranks(const Cluster& cluster, std::int64_t ranks);

}  // namespace paceline::models

// Tests: tests/models/cluster_catalog_test.cc, tests/models/cluster_test.cc.
#include "models/cluster/placement.h"

#include <fmt/format.h>

#include "models/base/error.h"

namespace paceline::models {

void check_ranks(const Cluster& cluster, std::int64_t ranks) {
  if (ranks >= 1 && ranks <= cluster.ranks()) return;
  throw InputError(fmt::format("{} ranks do not fit cluster {}", ranks, cluster.name),
                   fmt::format("choose 1 to {} ({} nodes x {} ranks)", cluster.ranks(),
                               cluster.nodes, cluster.ranks_per_node));
}

}  // namespace paceline::models

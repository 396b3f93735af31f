// Tests: tests/cli/command_test.py.
#include "models/cluster/cluster_figures.h"

#include "models/cluster/fabric.h"
#include "models/cluster/platform.h"

namespace paceline::models {

std::string described_fabric(const Cluster& cluster) {
  return cluster.platform == nullptr ? described(cluster.fabric)
                                     : "platform " + cluster.platform->name;
}

std::string_view name(NicUse use) {
  return use == NicUse::striped ? "striped" : "affinity";
}

}  // namespace paceline::models

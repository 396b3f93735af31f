// Tests: tests/cli/command_test.py.
#include "models/cluster/cluster_figures.h"

#include <fmt/core.h>

#include "models/base/error.h"
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

void take_stack(Stack stack, Cluster& cluster) {
  if (!cluster.effects || cluster.effects->layer_launch.high <= Seconds{0})
    throw InputError(fmt::format("no layer of {} has a time of its own on {}", cluster.name,
                                 cluster.device.name),
                     "leave it out: it is for GPUs");
  take_stack(stack, *cluster.effects);
}

}  // namespace paceline::models

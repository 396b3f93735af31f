// Tests: tests/cli/command_test.py.
#include "models/cluster/cluster_figures.h"

#include <fmt/core.h>

#include "models/base/error.h"
#include "models/base/names.h"
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

void take_attention_kernel(AttentionKernel kernel, Cluster& cluster) {
  TransformerKernels* const kernels =
      cluster.device.transformer ? &*cluster.device.transformer : nullptr;
  const auto known =
      kernels == nullptr ? std::nullopt : kernels->attention_by[static_cast<std::size_t>(kernel)];
  if (!known)
    throw InputError(fmt::format("how fast {} is on {} is not known",
                                 name_in(attention_kernels, kernel), cluster.device.name),
                     "leave it out");
  // A token also takes a time that does not depend on its sequence's length. It is taken to be that of the fastest kernel.
  kernels->half_rate_sequence *= known->value / kernels->attention.value;
  kernels->attention = *known;
}

}  // namespace paceline::models

// Tests: tests/models/other_nic_test.cc.
#include "models/cluster/other_nic.h"

#include <fmt/core.h>

#include "models/base/error.h"
#include "models/base/scale_figure.h"
#include "models/cluster/link_rules.h"

namespace paceline::models {
namespace {

bool joins_nodes(const Link& link) {
  return link.bandwidth_by_ranks.empty() && !link.is(LinkKind::nvlink) &&
         !link.is(LinkKind::xgmi) && !link.is(LinkKind::pcie) && !link.is(LinkKind::shared_memory);
}

void take_link(Cluster& cluster, const Link& link, int count) {
  if (!joins_nodes(link))
    throw InputError(fmt::format("{} joins ranks of a node, and no nodes", link.name),
                     "choose a link such as roce-100g or infiniband-ndr (paceline show catalog)");
  if (cluster.nic_use == NicUse::affinity && count > cluster.ranks_per_node)
    throw InputError(fmt::format("{} NICs for {} ranks of a node of {}, each of which uses one",
                                 count, cluster.ranks_per_node, cluster.name),
                     "at most one NIC for each rank");
  if (cluster.fabric.kind == FabricKind::rail && count < 2)
    throw InputError(fmt::format("one NIC for the rails of {}", cluster.name),
                     fmt::format("a rail is a NIC of each node: write 2x{}, or more", link.name));
  cluster.nic = link;
  cluster.nics_per_node = count;
  if (link.tcp_flows) {
    cluster.nic.bandwidth = tcp_bandwidth(link.line_rate, *link.tcp_flows, cluster.ranks_per_node);
  } else if (!cluster.gpudirect) {
    cluster.nic.bandwidth = bandwidth_without_gpudirect(link.line_rate);
  } else {
    cluster.nic.bandwidth = bandwidth_at_distance(cluster);
  }
}

}  // namespace

Cluster with_nic(Cluster cluster, const OtherNic& nic) {
  if (cluster.platform != nullptr)
    throw InputError(fmt::format("{} is on a platform, which has links of its own", cluster.name),
                     "change the bandwidths of its file");
  if (nic.link) {
    take_link(cluster, *nic.link, nic.count);
  } else if (!cluster.has_nic()) {
    throw InputError(fmt::format("{} has no NIC", cluster.name),
                     "name a link such as roce-100g (paceline show catalog)");
  }
  if (nic.bandwidth) {
    cluster.nic.bandwidth = *nic.bandwidth;
    cluster.nic.line_rate = *nic.bandwidth;
  }
  cluster.price.reset();
  return cluster;
}

Cluster with_faster_nic(Cluster cluster, double factor) {
  PACELINE_ASSERT(cluster.has_nic() && factor > 0, "there is a NIC to change");
  scale(cluster.nic.line_rate, factor);
  scale(cluster.nic.bandwidth, factor);
  return cluster;
}

}  // namespace paceline::models

// A cluster as it would be with other NICs: what a user compares before he buys.
#pragma once

#include <optional>

#include "models/cluster/cluster.h"

namespace paceline::models {

struct OtherNic {
  // The link of each NIC. Nothing: the cluster's own link at another bandwidth, which is given.
  std::optional<Link> link = {};
  int count = 1;  // NICs of a node, beside a link
  // What a message gets of a NIC, per direction, in place of what the link says.
  std::optional<Figure<BytesPerSecond>> bandwidth = {};
};

// The cluster with these NICs in place of its own. The rules of link_rules.h hold for them, too: TCP
// without a bandwidth of its own, and RDMA on a cluster whose NICs do not reach the devices' memory.
// The cluster has no price then, because its price is that of a node with its own NICs. Throws InputError
// if the link is not one between nodes, if the cluster is on a platform or has no NIC whose bandwidth
// could change, or if its fabric or its use of NICs does not allow as many.
[[nodiscard]] Cluster with_nic(Cluster cluster, const OtherNic& nic);

// The cluster with NICs that are this many times as fast, their price aside: line rate and bandwidth
// with its interval. Needs a NIC and a positive factor.
[[nodiscard]] Cluster with_faster_nic(Cluster cluster, double factor);

}  // namespace paceline::models

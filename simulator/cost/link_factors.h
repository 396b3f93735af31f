// The links of a cluster, faster or slower than they are: what a question of "twice the bandwidth"
// predicts with.
#pragma once

#include "models/cluster/cluster.h"
#include "models/profile/profile.h"

namespace paceline::simulator {

enum class Links { all, between_nodes, in_nodes };

// By what bandwidths and latencies are multiplied. Both are positive.
struct LinkFactors {
  double bandwidth = 1;
  double latency = 1;
  Links links = Links::all;

  bool operator==(const LinkFactors&) const = default;
};

// The cluster whose links have these factors. The switches, sockets and lanes of a host are in nodes.
// What is no link stays: devices, the memory of hosts, storage. Throws InputError for a cluster with a platform, which has
// links of its own.
[[nodiscard]] models::Cluster with_links(models::Cluster cluster, const LinkFactors& factors);

// The profile as it would be calibrated on that cluster: latencies, rates of links, the gap between
// messages, and curves, whose alpha is taken for latency and whose beta for bandwidth.
[[nodiscard]] models::Profile with_links(models::Profile profile, const LinkFactors& factors);

}  // namespace paceline::simulator

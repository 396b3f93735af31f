// A cluster's links and routes as an explicit platform, one host for each rank: what is written as
// SimGrid XML, and what a flow-level simulator of others would be given.
#pragma once

#include <string>

#include "models/cluster/platform.h"
#include "simulator/engine/routes.h"

namespace paceline::simulator {

// Routes are lists of links for every two hosts: beyond this they are larger than is useful.
inline constexpr int most_platform_ranks = 512;

// Only links that a route uses. Those of the cluster have no latency: alpha of a route is that of
// one more link on it, which is not shared and slows nobody down. Throws InputError beyond
// most_platform_ranks.
[[nodiscard]] models::Platform platform_of(const Routes& routes, const std::string& name);

}  // namespace paceline::simulator

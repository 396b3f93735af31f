// A cluster's links and routes as an explicit platform, one host for each rank. It can be written
// as SimGrid XML, or given to another flow-level simulator.
#pragma once

#include <string>

#include "models/cluster/platform.h"
#include "simulator/engine/routes.h"

namespace paceline::simulator {

// The most ranks of a platform, which has a list of links for every two hosts.
inline constexpr int most_platform_ranks = 512;

// The platform has only links that a route uses. The cluster's links have no latency in it. Each
// route has one more link, whose latency is the route's alpha; it is not shared and slows nobody
// down. Throws InputError beyond most_platform_ranks.
[[nodiscard]] models::Platform platform_of(const Routes& routes, const std::string& name);

}  // namespace paceline::simulator

// A platform as an explicit table: hosts, links, and the links of the route between every two
// hosts.
//
// SimGrid's XML describes a platform. A cluster whose fabric is not among FabricKind is given as
// one: each host is one rank.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/base/to_size.h"
#include "models/base/units.h"

namespace paceline::models {

struct PlatformLink {
  std::string name;
  BytesPerSecond bandwidth;
  Seconds latency;
  bool is_shared = true;  // false ("FATPIPE"): every flow may use all of `bandwidth`
};

struct Platform {
  std::string name;
  std::vector<std::string> hosts;
  std::vector<PlatformLink> links;
  // The route from host a to host b, a != b, is the links from route_links[first_of_route[i]] to
  // before first_of_route[i + 1], i = a * hosts + b. A full-duplex link is two links, one each way.
  std::vector<std::size_t> first_of_route;  // has hosts * hosts + 1 entries
  std::vector<int> route_links;

  [[nodiscard]] std::span<const int> route(int from, int to) const {
    const auto at = to_size(from) * hosts.size() + to_size(to);
    return std::span(route_links)
        .subspan(first_of_route[at], first_of_route[at + 1] - first_of_route[at]);
  }
};

}  // namespace paceline::models

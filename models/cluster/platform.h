// A platform as an explicit table: hosts, links, and the links of the route between every two
// hosts.
//
// It is what SimGrid's XML describes, and how a cluster whose fabric is none of ours comes in: each
// host is one rank.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/base/units.h"

namespace paceline::models {

struct PlatformLink {
  std::string name;
  BytesPerSecond bandwidth;
  Seconds latency;
  bool is_shared = true;  // false ("FATPIPE"): every flow gets up to `bandwidth`
};

struct Platform {
  std::string name;
  std::vector<std::string> hosts;
  std::vector<PlatformLink> links;
  // Route from host a to host b, a != b: links route_links[first_of_route[a * hosts + b]] up to the
  // first of the next. Directions of a full-duplex link are two links.
  std::vector<std::size_t> first_of_route;  // hosts * hosts + 1
  std::vector<int> route_links;

  [[nodiscard]] std::span<const int> route(int from, int to) const {
    const auto at = static_cast<std::size_t>(from) * hosts.size() + static_cast<std::size_t>(to);
    return std::span(route_links)
        .subspan(first_of_route[at], first_of_route[at + 1] - first_of_route[at]);
  }
};

}  // namespace paceline::models

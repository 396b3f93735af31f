// Tests: tests/simulator/platform_test.cc.
#include "simulator/engine/platform_of.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "models/base/error.h"

namespace paceline::simulator {

models::Platform platform_of(const Routes& routes, const std::string& name) {
  const int ranks = routes.ranks();
  if (ranks > most_platform_ranks) {
    throw InputError(
        fmt::format("{} ranks are {} routes", ranks, std::int64_t{ranks} * (ranks - 1)),
        fmt::format("choose at most {} ranks", most_platform_ranks));
  }
  models::Platform platform;
  platform.name = name;
  platform.first_of_route = {0};
  std::map<int, int> number_of_link;      // of routes, to that of the platform
  std::map<double, int> number_of_alpha;  // in seconds
  const auto add = [&platform](models::PlatformLink link) {
    platform.links.push_back(std::move(link));
    return static_cast<int>(platform.links.size()) - 1;
  };
  std::vector<int> path;
  BytesPerSecond fastest{0};
  for (int from = 0; from < ranks; ++from) {
    platform.hosts.push_back(fmt::format("rank-{}", from));
    for (int to = 0; to < ranks; ++to) {
      if (from != to) {
        const double alpha_s = routes.path(from, to, path);
        for (const int link : path) {
          const auto [entry, is_new] = number_of_link.try_emplace(link);
          if (is_new) {
            const BytesPerSecond bandwidth{1 / routes.beta_s(link)};
            entry->second =
                add({routes.link_name(link), bandwidth, Seconds{0}, routes.is_shared(link)});
            fastest = std::max(fastest, bandwidth);
          }
          platform.route_links.push_back(entry->second);
        }
        if (alpha_s > 0) {
          const auto [entry, is_new] = number_of_alpha.try_emplace(alpha_s);
          if (is_new)
            entry->second = add({fmt::format("latency-{}", number_of_alpha.size() - 1),
                                 BytesPerSecond{1}, Seconds{alpha_s}, false});
          platform.route_links.push_back(entry->second);
        }
      }
      platform.first_of_route.push_back(platform.route_links.size());
    }
  }
  for (const auto& [alpha_s, link] : number_of_alpha)
    platform.links[static_cast<std::size_t>(link)].bandwidth = fastest;
  return platform;
}

}  // namespace paceline::simulator

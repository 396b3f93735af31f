// Tests: tests/simulator/platform_test.cc.
#include "simulator/engine/platform_of.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::simulator {
namespace {

// The number of at most 12 digits that differs from `value` by no more than rounding: what comes
// out of 1 / (1 / 1e9) is 1e9 again. If there is none, `value`.
double without_rounding(double value) {
  const double rounded = std::stod(fmt::format("{:.12g}", value));
  return std::fabs(rounded - value) <= 4e-16 * std::fabs(value) ? rounded : value;
}

}  // namespace

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
  std::map<int, int> number_of_link;      // the platform's number for each number of a route's link
  std::map<double, int> number_of_alpha;  // the platform's link for each alpha, in seconds
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
        const double alpha_s = without_rounding(routes.path(from, to, path));
        for (const int link : path) {
          const auto [entry, is_new] = number_of_link.try_emplace(link);
          if (is_new) {
            const BytesPerSecond bandwidth{without_rounding(1 / routes.beta_s(link))};
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
    platform.links[to_size(link)].bandwidth = fastest;
  return platform;
}

}  // namespace paceline::simulator

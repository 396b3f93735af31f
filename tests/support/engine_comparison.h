// Holding engines that follow messages through shared links against each other, and against times
// computed by hand.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/cluster/platform.h"
#include "models/collective/combinators.h"
#include "models/collective/enumerate.h"
#include "simulator/engine/network_engine.h"

namespace paceline::test {

// The largest difference of any rank's finish, relative to what is expected.
inline double worst_difference(const simulator::Completion& found,
                               const simulator::Completion& expected, int ranks) {
  double worst = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const double difference = std::fabs(found.of(rank).value() - expected.of(rank).value());
    if (difference > 0) worst = std::max(worst, difference / expected.of(rank).value());
  }
  return worst;
}

// When each of the collectives is done, launched under their places in the list.
inline std::vector<double> finish_times(simulator::NetworkEngine& engine,
                                        std::span<const simulator::Launch> launches) {
  std::vector<double> finish_s(launches.size(), -1);
  engine.run(
      [&](simulator::Launcher& launcher) {
        for (std::size_t i = 0; i < launches.size(); ++i)
          launcher.launch(static_cast<int>(i), launches[i]);
      },
      [&](int id, Seconds at, simulator::Launcher&) {
        finish_s[static_cast<std::size_t>(id)] = at.value();
      });
  return finish_s;
}

// One message of the whole bucket.
inline models::Schedule message(int ranks, int from, int to) {
  return models::within(ranks,
                        models::Groups{.members = {{.first = from, .count = 1, .stride = 1},
                                                   {.first = to, .count = 1, .stride = 1}},
                                       .count = 1,
                                       .stride = 0},
                        models::Schedule(models::BinomialBroadcast{2}));
}

// Hosts that reach each other over the links that `routes` names; between others there is none.
inline std::shared_ptr<const models::Platform> platform(
    int hosts, std::vector<models::PlatformLink> links,
    const std::map<std::pair<int, int>, std::vector<int>>& routes) {
  models::Platform platform{.name = "test",
                            .hosts = {},
                            .links = std::move(links),
                            .first_of_route = {0},
                            .route_links = {}};
  for (int from = 0; from < hosts; ++from) {
    platform.hosts.push_back("h" + std::to_string(from));
    for (int to = 0; to < hosts; ++to) {
      if (const auto route = routes.find({from, to}); route != routes.end())
        platform.route_links.insert(platform.route_links.end(), route->second.begin(),
                                    route->second.end());
      platform.first_of_route.push_back(platform.route_links.size());
    }
  }
  return std::make_shared<const models::Platform>(std::move(platform));
}

// Every two hosts have a link of their own, of a random speed and latency, and even messages
// between the same two share nothing: the step engine is exact.
inline std::shared_ptr<const models::Platform> unshared_platform(int hosts, std::mt19937& random) {
  std::vector<models::PlatformLink> links;
  std::map<std::pair<int, int>, std::vector<int>> routes;
  for (int from = 0; from < hosts; ++from) {
    for (int to = 0; to < hosts; ++to) {
      if (from == to) continue;
      routes[{from, to}] = {static_cast<int>(links.size())};
      links.push_back(
          {.name = "l" + std::to_string(links.size()),
           .bandwidth = BytesPerSecond{std::uniform_real_distribution(1e8, 1e11)(random)},
           .latency = Seconds{std::uniform_real_distribution(0.0, 2e-5)(random)},
           .is_shared = false});
    }
  }
  return platform(hosts, std::move(links), routes);
}

// Does every rank send at most one message in each step, and receive at most one? Then on one rank
// a node nothing is shared.
inline bool has_single_messages(const models::Schedule& schedule) {
  bool is_single = true;
  for (int step = 0; step < schedule.steps(); ++step) {
    std::vector<int> sends(static_cast<std::size_t>(schedule.ranks()));
    std::vector<int> receives = sends;
    models::for_each_transfer(schedule, step, models::Span<double>{0.0, 1.0},
                              [&](const models::Transfer<double>& t) {
                                is_single &= ++sends[static_cast<std::size_t>(t.from)] == 1;
                                is_single &= ++receives[static_cast<std::size_t>(t.to)] == 1;
                              });
  }
  return is_single;
}

}  // namespace paceline::test

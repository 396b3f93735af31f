#include "simulator/engine/path_classes.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline::simulator {
namespace {

// 1 s inside a node and 10 s between nodes; 1 s for a byte through a port and 2 s through a NIC.
CommunicationCost by_hand() {
  return {.ranks_per_node = 2,
          .intra = {Seconds{1}, SecondsPerByte{1}},
          .nic = {Seconds{10}, SecondsPerByte{2}}};
}

TEST(PathClasses, OfLinksOfOneRateTheMostLoadedCounts) {
  std::vector<RateLoad> way;
  add_load(way, {0, 0.25});
  add_load(way, {1, 0.5});
  add_load(way, {0, 0.75});
  add_load(way, {0, 0.5});
  EXPECT_EQ(way, (std::vector<RateLoad>{{0, 0.75}, {1, 0.5}}));
}

TEST(PathClasses, AreOneForEqualWaysOnly) {
  PathClasses kinds;
  const std::vector<RateLoad> way = {{0, 0.5}, {1, 0.25}};
  const int first = kinds.of({.hops = 1}, way);
  EXPECT_EQ(kinds.of({.hops = 1}, way), first);
  EXPECT_NE(kinds.of({.hops = 3}, way), first);
  EXPECT_NE(kinds.of({.hops = 1, .alpha_s = 1e-6}, way), first);
  EXPECT_NE(kinds.of({.hops = 1}, std::vector<RateLoad>{{0, 0.5}, {1, 0.5}}), first);
  EXPECT_NE(kinds.of({.hops = 1}, std::vector<RateLoad>{{0, 0.5}, {2, 0.25}}), first);
  EXPECT_NE(kinds.of({.hops = 1}, std::vector<RateLoad>{{0, 0.5}}), first);
  // Many that are alike by chance in whatever finds them fast.
  std::vector<int> numbers;
  for (int i = 0; i < 1000; ++i)
    numbers.push_back(kinds.of({}, std::vector<RateLoad>{{i % 7, 1.0 / (1 + i)}}));
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(kinds.of({}, std::vector<RateLoad>{{i % 7, 1.0 / (1 + i)}}),
              numbers[static_cast<std::size_t>(i)]);
}

TEST(PathClasses, TakeAlphaAndTheSlowestLink) {
  const Routes routes(by_hand(), 4);
  PathClasses kinds;
  std::vector<int> path;
  const auto way = [&](int from, int to, double load) {
    const Routes::Distance distance = routes.way(from, to, path);
    std::vector<RateLoad> loads;
    for (const int link : path) add_load(loads, {routes.rate(link), load});
    return static_cast<std::size_t>(kinds.of(distance, loads));
  };
  const std::size_t inside = way(0, 1, 0.5);
  const std::size_t between = way(0, 2, 0.5);
  const std::vector<PathTime> times = kinds.times(routes);
  EXPECT_DOUBLE_EQ(times[inside].alpha_s, 1);
  EXPECT_DOUBLE_EQ(times[inside].per_byte_s, 0.5);
  EXPECT_DOUBLE_EQ(times[between].alpha_s, 10);
  EXPECT_DOUBLE_EQ(times[between].per_byte_s, 1);
}

}  // namespace
}  // namespace paceline::simulator

#include "simulator/engine/alike_positions.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "models/collective/algorithms.h"
#include "simulator/engine/equivalence.h"
#include "simulator/engine/flow_engine.h"
#include "tests/support/generators.h"

namespace paceline::simulator {
namespace {

// Nodes of switched ranks behind one NIC each.
CommunicationCost switched(int ranks_per_node) {
  return {.ranks_per_node = ranks_per_node,
          .intra = {Seconds{3e-6}, SecondsPerByte{1e-10}},
          .nic = {Seconds{1e-5}, SecondsPerByte{4e-10}},
          .gamma = SecondsPerByte{1e-11}};
}

RunsOfSchedules runs_of(const std::vector<models::Schedule>& schedules, const Routes& routes,
                        const Positions& positions) {
  RunsOfSchedules all;
  for (const models::Schedule& schedule : schedules) {
    all.emplace_back();
    for_each_run(schedule, routes, positions, [&](const PreparedRun& run) {
      all.back().push_back(run);
      return true;
    });
  }
  return all;
}

std::optional<AlikePositions> alike(const std::vector<models::Schedule>& schedules,
                                    const CommunicationCost& cost) {
  const Routes routes(cost, schedules.front().ranks());
  const Positions positions = positions_of(schedules, routes);
  return alike_positions(runs_of(schedules, routes, positions), routes, positions);
}

// A server on each of two nodes of four: the servers are alike, and so are all others.
TEST(AlikePositions, OfServers) {
  const auto found = alike({models::parameter_server(8, 2, 0)}, switched(4));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->class_of, (std::vector{0, 1, 1, 1}));  // positions are ranks of a node
  // Push: three ranks of a node send to its server, four of each node to that of the other, the
  // server among them; the other way, too, where the server itself sends to the other.
  ASSERT_EQ(found->runs.size(), 1);
  ASSERT_EQ(found->runs.front().size(), 2);
  EXPECT_EQ(found->runs.front().front().messages.size(), 3);
}

// Buckets on servers of their own: each of four nodes is another, but not its ranks, of which the
// first may be a server.
TEST(AlikePositions, OfBucketsOnDifferentServers) {
  std::vector<models::Schedule> schedules;
  for (int node = 0; node < 4; ++node)
    schedules.push_back(models::parameter_server(16, 1, 4 * node));
  const auto found = alike(schedules, switched(4));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->classes, 8);
  EXPECT_EQ(found->class_of, (std::vector{0, 1, 1, 1, 2, 3, 3, 3, 4, 5, 5, 5, 6, 7, 7, 7}));
}

// Seven messages of one class pass the NIC of each of their nodes, and those of all three nodes but
// one the server's.
TEST(AlikePositions, WeightsAreThoseOfTheLinks) {
  const std::vector<models::Schedule> schedules = {models::parameter_server(24, 1, 0)};
  const CommunicationCost cost = switched(8);
  const Routes routes(cost, 24);
  const auto found = alike(schedules, cost);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->classes, 3);  // the server, its neighbours, the ranks of other nodes
  std::vector<double> of_nics;
  const PreparedRun& push = found->runs.front().front();
  ASSERT_EQ(push.messages.size(), 2);
  for (std::size_t i = 0; i < push.links.size(); ++i)
    if (routes.link_name(push.links[i]).starts_with("NIC")) of_nics.push_back(push.weights[i]);
  std::sort(of_nics.begin(), of_nics.end());
  EXPECT_EQ(of_nics, (std::vector{8.0, 16.0}));
}

// A ring that does not fill its last node has no two ranks that are alike for long.
TEST(AlikePositions, NotOnARingWithATail) {
  EXPECT_FALSE(alike({models::ring_all_reduce(30)}, switched(8)));
}

// Ranks that are one pair in two steps send as one of several alike messages in each, and of as many in
// one as in the other only by chance.
TEST(AlikePositions, InASegmentedTree) {
  const models::Schedule tree = models::double_binary_tree_all_reduce(24, 16);
  CommunicationCost cost = switched(8);
  cost.host = HostCost{.sockets = 2, .switches = 4};
  cost.host->crossing = SecondsPerByte{8e-11};
  cost.host->uplink = SecondsPerByte{1.4e-10};
  FlowEngine few({&tree, 1}, cost);
  FlowEngine all({&tree, 1}, cost, Collapse::none);
  EXPECT_LT(few.positions(), 24);
  for (const double bytes : {64e3, 1e6, 16e6}) {
    const double expected = all.completion(0, Bytes{bytes}).last().value();
    EXPECT_NEAR(few.completion(0, Bytes{bytes}).last().value(), expected, 1e-9 * expected);
  }
}

// The quotient says of every rank what following all of them says, also where the last node is not
// full and where several collectives are in flight.
RC_GTEST_PROP(AlikePositions, SayWhatEveryRankSays, ()) {
  const int g = test::drawn_ranks_per_node();
  const int nodes = test::drawn(1, 6);
  const CommunicationCost cost = test::drawn_cost(g, nodes, test::drawn(0, 3) > 0);
  const int ranks = test::drawn(0, 1) == 0 ? test::drawn(1, g * nodes) : g * nodes;
  std::vector<models::Schedule> schedules;
  std::vector<Launch> launches;
  for (int i = test::drawn(1, 4); i > 0; --i) {
    const int servers = test::drawn(1, ranks);
    schedules.push_back(test::drawn(0, 1) == 0
                            ? test::drawn_all_reduce(ranks, test::drawn(0, 1))
                            : models::parameter_server(ranks, servers, test::drawn(0, ranks - 1)));
    launches.push_back({.schedule = static_cast<int>(schedules.size()) - 1,
                        .bytes = Bytes{test::drawn_up_to(1e7)},
                        .at = Seconds{test::drawn_up_to(1e-3)}});
  }
  FlowEngine few(schedules, cost);
  FlowEngine all(schedules, cost, Collapse::none);
  const Routes routes(cost, ranks);
  RC_CLASSIFY(few.positions() < positions_of(schedules, routes).count(), "merged");
  const auto times = [&](FlowEngine& engine) {
    std::vector<double> finished(launches.size());
    engine.run(
        [&](Launcher& launcher) {
          for (std::size_t i = 0; i < launches.size(); ++i)
            launcher.launch(static_cast<int>(i), launches[i]);
        },
        [&](int id, Seconds when, Launcher&) {
          finished[static_cast<std::size_t>(id)] = when.value();
        });
    return finished;
  };
  const std::vector<double> found = times(few);
  const std::vector<double> expected = times(all);
  for (std::size_t i = 0; i < found.size(); ++i)
    RC_ASSERT(std::fabs(found[i] - expected[i]) <= 1e-8 * expected[i]);
  const Completion one = few.completion(0, launches.front().bytes);
  const Completion every = all.completion(0, launches.front().bytes);
  for (int rank = 0; rank < ranks; ++rank)
    RC_ASSERT(std::fabs(one.of(rank).value() - every.of(rank).value()) <=
              1e-8 * every.of(rank).value());
}

}  // namespace
}  // namespace paceline::simulator

#include "simulator/engine/routes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "models/collective/enumerate.h"
#include "simulator/engine/equivalence.h"
#include "simulator/engine/step_engine.h"
#include "tests/support/error_of.h"
#include "tests/support/generators.h"
#include "tests/support/reference_routes.h"
#include "tests/support/schedules.h"

namespace paceline::simulator {
namespace {

using models::Fabric;
using models::FabricKind;
using models::IntraKind;
using models::NicUse;

// Round numbers: a message of 1 GB takes 1 s in a port, 10 s in a NIC; alpha 1 ms and 10 ms.
CommunicationCost by_hand(int g, Fabric fabric = {}) {
  CommunicationCost cost;
  cost.ranks_per_node = g;
  cost.intra = {Seconds{1e-3}, SecondsPerByte{1e-9}};
  cost.nic = {Seconds{1e-2}, SecondsPerByte{1e-8}};
  cost.fabric = std::move(fabric);
  return cost;
}

Fabric fat_tree(std::vector<models::FatTreeLevel> levels) {
  return {.kind = FabricKind::fat_tree, .levels = std::move(levels)};
}
Fabric torus(std::vector<int> shape) {
  return {.kind = FabricKind::torus, .shape = std::move(shape)};
}
Fabric rail(double oversubscription) {
  return {.kind = FabricKind::rail, .oversubscription = oversubscription};
}

std::vector<std::string> names(const Routes& routes, int from, int to) {
  std::vector<int> path;
  routes.path(from, to, path);
  std::vector<std::string> result;
  for (const int link : path) result.push_back(routes.link_name(link));
  return result;
}

double alpha(const Routes& routes, int from, int to) {
  std::vector<int> path;
  return routes.path(from, to, path);
}

// Steps between two coordinates on a ring.
int ring_distance(int a, int b, int length) {
  const int forward = (b - a + length) % length;
  return std::min(forward, length - forward);
}

TEST(Routes, NameWhatAMessagePasses) {
  CommunicationCost cost = by_hand(4, fat_tree({{2, 2.0}, {2, 3.0}}));
  const Routes tree(cost, 32);
  using Names = std::vector<std::string>;
  EXPECT_EQ(names(tree, 0, 3), (Names{"port-0-0", "port-3-1"}));
  EXPECT_EQ(names(tree, 0, 5), (Names{"port-0-0", "NIC-0-0", "NIC-1-1", "port-5-1"}));
  EXPECT_EQ(names(tree, 0, 31), (Names{"port-0-0", "NIC-0-0", "leaf-0-0", "pod-0-0", "pod-1-1",
                                       "leaf-3-1", "NIC-7-1", "port-31-1"}));
  cost.fabric = rail(4);
  cost.nic_use = NicUse::affinity;
  cost.nics_per_node = 2;
  const Routes rails(cost, 32);
  EXPECT_EQ(names(rails, 0, 5), (Names{"port-0-0", "NIC-0-0", "NIC-1-1", "port-5-1"}));
  EXPECT_EQ(names(rails, 0, 7),
            (Names{"port-0-0", "NIC-0-0", "spine-0-0", "spine-0-3", "NIC-1-3", "port-7-1"}));
}

TEST(Routes, InsideANodeMayPassTheHost) {
  CommunicationCost cost = by_hand(4);
  cost.host = HostCost{.sockets = 2,
                       .crossing = SecondsPerByte{1e-9},
                       .memory = SecondsPerByte{1e-9},
                       .switches = 4,
                       .uplink = SecondsPerByte{1e-9}};
  using Names = std::vector<std::string>;
  const Routes direct(cost, 8);
  EXPECT_EQ(names(direct, 4, 5), (Names{"port-4-0", "uplink-1-0", "uplink-1-3", "port-5-1"}));
  EXPECT_EQ(names(direct, 0, 3), (Names{"port-0-0", "uplink-0-0", "crossing-0-0", "crossing-0-3",
                                        "uplink-0-7", "port-3-1"}));
  EXPECT_EQ(names(direct, 0, 4), (Names{"port-0-0", "NIC-0-0", "NIC-1-1", "port-4-1"}));
  cost.host->switches = 2;
  EXPECT_EQ(names(Routes(cost, 8), 0, 1), (Names{"port-0-0", "port-1-1"})) << "one switch";
  cost.host->staged = true;
  EXPECT_EQ(names(Routes(cost, 8), 0, 1),
            (Names{"port-0-0", "uplink-0-0", "memory-0-0", "uplink-0-1", "port-1-1"}));
}

TEST(Routes, CountTheSwitchesOfAFatTree) {
  Fabric fabric = fat_tree({{4, 2.0}, {2, 1.0}});
  fabric.hop_latency = Seconds{1};
  const Routes routes(by_hand(2, fabric), 64);
  EXPECT_DOUBLE_EQ(alpha(routes, 0, 7), 1e-2) << "one switch";
  EXPECT_DOUBLE_EQ(alpha(routes, 0, 15), 1e-2 + 2) << "leaf, pod, leaf";
  EXPECT_DOUBLE_EQ(alpha(routes, 0, 16), 1e-2 + 4) << "leaf, pod, core, pod, leaf";
  EXPECT_DOUBLE_EQ(alpha(routes, 0, 1), 1e-3) << "inside a node";
}

TEST(Routes, OfARailStayOnOneSwitch) {
  CommunicationCost cost = by_hand(4, rail(1));
  cost.fabric.hop_latency = Seconds{1};
  cost.nic_use = NicUse::affinity;
  cost.nics_per_node = 4;
  const Routes routes(cost, 16);
  EXPECT_DOUBLE_EQ(alpha(routes, 1, 13), 1e-2);
  EXPECT_DOUBLE_EQ(alpha(routes, 1, 12), 1e-2 + 2);
}

RC_GTEST_PROP(Routes, EqualTheReference, ()) {
  const int ranks = test::drawn(2, 48);
  const CommunicationCost cost = *test::communication_costs(ranks);
  const Routes routes(cost, ranks);
  const test::ReferenceRoutes reference(cost, ranks);
  // The same links under other names: two ways share one if and only if the others do.
  std::map<std::string, int> link_of_name;
  std::map<int, std::string> name_of_link;
  std::vector<int> path;
  for (int trial = 0; trial < 60; ++trial) {
    const int from = test::drawn(0, ranks - 1);
    const int to = (from + test::drawn(1, ranks - 1)) % ranks;
    const double alpha_s = routes.path(from, to, path);
    const auto way = reference.way(from, to);
    RC_ASSERT(std::fabs(alpha_s - way.alpha_s) <= 1e-12 * way.alpha_s);
    RC_ASSERT(path.size() == way.links.size());
    std::multiset<double> betas;
    std::multiset<double> expected;
    for (const int link : path) betas.insert(routes.beta_s(link));
    for (const auto& [name, beta_s] : way.links) expected.insert(beta_s);
    for (auto a = betas.begin(), b = expected.begin(); a != betas.end(); ++a, ++b)
      RC_ASSERT(std::fabs(*a - *b) <= 1e-12 * *b);
  }
}

// Out of the sender's port, through its node's NIC, and into the receiver's; no link twice, and
// switches in mirrored order.
RC_GTEST_PROP(Routes, AreChainsFromSenderToReceiver, ()) {
  const int ranks = test::drawn(2, 48);
  const CommunicationCost cost = *test::communication_costs(ranks);
  const Routes routes(cost, ranks);
  const int from = test::drawn(0, ranks - 1);
  const int to = (from + test::drawn(1, ranks - 1)) % ranks;
  std::vector<std::string> chain = names(routes, from, to);
  RC_ASSERT(!chain.empty());
  RC_ASSERT(std::set<std::string>(chain.begin(), chain.end()).size() == chain.size());
  if (cost.intra_kind == IntraKind::switched) {
    RC_ASSERT(chain.front().starts_with("port-") && chain.front().ends_with("-0"));
    RC_ASSERT(chain.back().starts_with("port-") && chain.back().ends_with("-1"));
    chain.erase(chain.begin());
    chain.pop_back();
  }
  const auto is_inside = [](const std::string& link) {
    return link.starts_with("lane") || link.starts_with("uplink") || link.starts_with("crossing") ||
           link.starts_with("memory");
  };
  if (chain.empty() || is_inside(chain.front())) return;
  if (cost.fabric.kind == FabricKind::torus) {
    for (const std::string& link : chain) RC_ASSERT(link.starts_with("grid-"));
    return;
  }
  RC_ASSERT(chain.front().starts_with("NIC-") && chain.back().starts_with("NIC-"));
  RC_ASSERT(chain.size() % 2 == 0u);
  for (std::size_t i = 1; i + 1 < chain.size(); ++i) {
    const bool up = i < chain.size() / 2;
    RC_ASSERT(chain[i].starts_with("leaf-") || chain[i].starts_with("pod-") ||
              chain[i].starts_with("spine-"));
    const int index = chain[i].back() - '0';
    RC_ASSERT((index % 2 == 0) == up);
  }
}

TEST(Routes, OfATorusTakeTheShorterWayRoundEachRing) {
  for (const std::vector<int>& shape :
       {std::vector<int>{5, 4}, {2, 7}, {1, 6}, {3, 4, 2}, {4, 4, 4}}) {
    const int nodes = std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>());
    CommunicationCost cost = by_hand(1, torus(shape));
    cost.fabric.hop_latency = Seconds{1};
    cost.intra_kind = IntraKind::ring;  // no ports
    const Routes routes(cost, nodes);
    std::vector<int> path;
    for (int a = 0; a < nodes; ++a) {
      for (int b = 0; b < nodes; ++b) {
        if (a == b) continue;
        int expected = 0;
        int rest_a = a;
        int rest_b = b;
        for (const int length : shape) {
          expected += ring_distance(rest_a % length, rest_b % length, length);
          rest_a /= length;
          rest_b /= length;
        }
        const double alpha_s = routes.path(a, b, path);
        EXPECT_EQ(path.size(), static_cast<std::size_t>(expected)) << a << " to " << b;
        EXPECT_NEAR(alpha_s, 1e-2 + expected - 1, 1e-9);
      }
    }
  }
}

// What enters a switch, a node or a rank in a step leaves it: the loads of families of links that
// every message outside a node passes are the bytes of those messages.
RC_GTEST_PROP(Routes, ConserveLoads, ()) {
  const int ranks = test::drawn(2, 32);
  const CommunicationCost cost = *test::communication_costs(ranks);
  const models::Schedule schedule = test::drawn_all_reduce(ranks, 1);
  if (schedule.steps() == 0) return;
  const Routes routes(cost, ranks);
  const test::ReferenceRoutes reference(cost, ranks);
  const int step = test::drawn(0, schedule.steps() - 1);
  std::map<std::string, double> load;  // by kind of link and direction
  double outside = 0;
  double all = 0;
  std::vector<int> path;
  models::for_each_transfer(
      schedule, step, models::Span<double>{0.0, 1.0}, [&](const models::Transfer<double>& t) {
        routes.path(t.from, t.to, path);
        for (const int link : path) {
          const std::string name = routes.link_name(link);
          const int index = name.back() - '0';
          load[name.substr(0, name.find('-')) + (index % 2 == 0 ? " out" : " in")] += t.span.size;
        }
        all += t.span.size;
        for (const auto& [name, beta_s] : reference.way(t.from, t.to).links) {
          if (name.starts_with("NIC") && name.ends_with("out")) outside += t.span.size;
        }
      });
  const auto is = [](double found, double expected) {
    return std::fabs(found - expected) <= 1e-9 * (1 + expected);
  };
  RC_ASSERT(is(load["NIC out"], outside));
  RC_ASSERT(is(load["NIC in"], outside));
  RC_ASSERT(is(load["leaf out"], load["leaf in"]));
  RC_ASSERT(is(load["pod out"], load["pod in"]));
  RC_ASSERT(is(load["spine out"], load["spine in"]));
  if (cost.intra_kind == IntraKind::switched) {
    RC_ASSERT(is(load["port out"], all));
    RC_ASSERT(is(load["port in"], all));
  }
}

// A rank in slot s behaves as rank s of the node-major cluster does.
RC_GTEST_PROP(Routes, APermutedPlacementIsARenumbering, ()) {
  const int g = test::drawn_ranks_per_node();
  const int nodes = test::drawn(1, 24 / g);
  const int ranks = g * nodes;
  CommunicationCost placed = test::drawn_cost(g, nodes, true);
  CommunicationCost plain = placed;
  placed.slots = test::drawn_permutation(ranks);
  const models::Schedule schedule = test::drawn_all_reduce(ranks, 1);
  const models::Schedule renumbered = models::within(ranks, test::in_order(placed.slots), schedule);
  const Bytes bytes{test::drawn_up_to(1e8)};
  const Completion a = StepEngine(schedule, placed).completion(bytes);
  const Completion b = StepEngine(renumbered, plain).completion(bytes);
  for (int rank = 0; rank < ranks; ++rank) {
    const double expected = b.of(placed.slots[static_cast<std::size_t>(rank)]).value();
    RC_ASSERT(std::fabs(a.of(rank).value() - expected) <= 1e-11 * expected);
  }
}

TEST(Routes, RoundRobinPutsOneRankOnEachNodeAndThenTheNext) {
  CommunicationCost cost = by_hand(4);
  cost.placement = models::Placement::round_robin;
  CommunicationCost listed = by_hand(4);
  listed.slots = {0, 4, 8, 1, 5, 9, 2, 6, 10, 3};
  const Routes dealt(cost, 10);
  const Routes by_list(listed, 10);
  for (int a = 0; a < 10; ++a) {
    for (int b = 0; b < 10; ++b) {
      if (a != b) EXPECT_EQ(names(dealt, a, b), names(by_list, a, b));
    }
  }
  cost.slots = {3, 2, 1, 0};
  EXPECT_EQ(names(Routes(cost, 2), 0, 1), (std::vector<std::string>{"port-3-0", "port-2-1"}))
      << "a list comes before a name";
}

TEST(Routes, RefusesWhatDoesNotFit) {
  EXPECT_EQ(test::error_of([] {
              return Routes(by_hand(2, torus({2, 2})), 9).links();
            }),
            "5 nodes in a torus of 4; choose at most 8 ranks");
  CommunicationCost wide = by_hand(1 << 14);
  wide.intra_kind = IntraKind::all_to_all;
  EXPECT_EQ(test::error_of([&] { return Routes(wide, 1 << 20).links(); }),
            "1048576 ranks on nodes of 16384 have 17179869184 links or more; choose a cluster of "
            "at most 67108864 links");
}

// 8 nodes of one rank below 2 leaves; a message of 1 GB takes 10 s in a NIC. Ring of 8 GB: chunks
// of 1 GB, 14 steps.
TEST(StepTimes, ARingCrossesAnOversubscribedLeafOnceUnlessRanksAreDealtOut) {
  const Bytes bytes{8e9};
  const models::Schedule ring = models::ring_all_reduce(8);
  CommunicationCost cost = by_hand(1, fat_tree({{4, 4.0}}));
  // The uplink of four nodes at 4:1 is that of one NIC: one message at a time has all of it.
  EXPECT_NEAR(StepEngine(ring, cost).time(bytes).value(), 14 * (0.01 + 10), 1e-9);
  // Even ranks on one leaf, odd ones on the other: four messages go up each leaf.
  cost.slots = {0, 4, 1, 5, 2, 6, 3, 7};
  EXPECT_NEAR(StepEngine(ring, cost).time(bytes).value(), 14 * (0.01 + 40), 1e-9);
  // At 1:1 the order does not matter.
  cost.fabric = fat_tree({{4, 1.0}});
  EXPECT_NEAR(StepEngine(ring, cost).time(bytes).value(), 14 * (0.01 + 10), 1e-9);
}

// The same in nodes of two ranks: round-robin sends both messages of a node through its NIC.
TEST(StepTimes, RoundRobinIsSlowerForARing) {
  const Bytes bytes{8e9};
  const models::Schedule ring = models::ring_all_reduce(8);
  CommunicationCost cost = by_hand(2);
  EXPECT_NEAR(StepEngine(ring, cost).time(bytes).value(), 14 * (0.01 + 10), 1e-9);
  cost.placement = models::Placement::round_robin;
  EXPECT_NEAR(StepEngine(ring, cost).time(bytes).value(), 14 * (0.01 + 20), 1e-9);
}

// Rings along X, then along Y: every step is one hop of the torus and nothing is shared.
TEST(StepTimes, ATorusAllReduceOnATorusSharesNothing) {
  const Bytes bytes{16e9};
  const models::Schedule schedule = test::hierarchical_reduce_scatter(16, 4);
  CommunicationCost cost = by_hand(1, torus({4, 4}));
  cost.fabric.hop_latency = Seconds{1};
  // 3 steps of 4 GB, 6 of 1 GB, 3 of 4 GB, at 10 s for a GB.
  EXPECT_NEAR(StepEngine(schedule, cost).time(bytes).value(), 12 * 0.01 + 240 + 60, 1e-9);
  // Columns 1 and 2 swapped: neighbours along X are two hops apart where they meet another's
  // message on the link from column 1 to 2, and every rank has such a message in every step.
  cost.slots = {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15};
  EXPECT_NEAR(StepEngine(schedule, cost).time(bytes).value(), 6 * (1.01 + 80) + 6 * (0.01 + 10),
              1e-9);
}

// Two messages that meet on a link of the torus, by hand: on a ring of 4, 0 to 2 and 1 to 3 go
// forward over 1-2 both.
TEST(StepTimes, MessagesMeetOnALinkOfATorus) {
  const CommunicationCost cost = by_hand(1, torus({4, 1}));
  const models::Schedule pairs = models::sequence({models::within(
      4, models::across_blocks(4, 2), models::Schedule(models::RecursiveHalving{2}))});
  // Pairs {0, 2} and {1, 3} exchange halves: each of the four links of the ring that point forward
  // carries two messages of half a GB.
  EXPECT_NEAR(StepEngine(pairs, cost).time(Bytes{1e9}).value(), 0.01 + 10, 1e-9);
}

// Four nodes of four ranks, each with a NIC of its own. All-reduce among the ranks of one place, in
// every place at once: on the rails nothing is shared. Turned by one place in each node, every
// message changes rails, and a spine at 4:1 makes it four times slower.
TEST(StepTimes, ARailOptimisedFabricWantsPeersOnTheSameRail) {
  CommunicationCost cost = by_hand(4, rail(4));
  cost.nic_use = NicUse::affinity;
  cost.nics_per_node = 4;
  const models::Schedule across =
      models::within(16, models::across_blocks(16, 4), models::ring_all_reduce(4));
  const Bytes bytes{4e9};
  EXPECT_NEAR(StepEngine(across, cost).time(bytes).value(), 6 * (0.01 + 10), 1e-9);
  cost.slots = {0, 1, 2, 3, 5, 6, 7, 4, 10, 11, 8, 9, 15, 12, 13, 14};
  EXPECT_NEAR(StepEngine(across, cost).time(bytes).value(), 6 * (0.01 + 40), 1e-9);
  cost.fabric = rail(1);
  EXPECT_NEAR(StepEngine(across, cost).time(bytes).value(), 6 * (0.01 + 10), 1e-9);
}

// A job on a part of the cluster has the spine of all of it.
TEST(StepTimes, ASpineIsSizedForTheNodesOfTheCluster) {
  CommunicationCost cost = by_hand(2, rail(4));
  cost.nic_use = NicUse::affinity;
  cost.nics_per_node = 2;
  const models::Schedule exchange = models::Schedule(models::PairwiseAllToAll{4});
  const double alone = StepEngine(exchange, cost).time(Bytes{1e9}).value();
  cost.nodes = 8;
  EXPECT_LT(StepEngine(exchange, cost).time(Bytes{1e9}).value(), alone);
}

// A ring inside a node: neighbours have a lane each; a message half-way round passes two.
TEST(StepTimes, LanesOfARingInsideANode) {
  CommunicationCost cost = by_hand(4);
  cost.intra_kind = IntraKind::ring;
  const Bytes bytes{4e9};
  EXPECT_NEAR(StepEngine(models::ring_all_reduce(4), cost).time(bytes).value(), 6 * (0.001 + 1),
              1e-9);
  const models::Schedule pairs =
      models::within(4, models::across_blocks(4, 2), models::Schedule(models::RecursiveHalving{2}));
  EXPECT_NEAR(StepEngine(pairs, cost).time(bytes).value(), 0.001 + 2 * 2, 1e-9);
  cost.intra_kind = IntraKind::all_to_all;
  EXPECT_NEAR(StepEngine(pairs, cost).time(bytes).value(), 0.001 + 2, 1e-9);
  // Lanes of its own to each peer: a direct exchange takes as long as one message of it.
  const models::Schedule direct(models::ServerPush{4, 4});
  EXPECT_NEAR(StepEngine(direct, cost).time(bytes).value(), 0.001 + 1, 1e-9);
  cost.intra_kind = IntraKind::switched;
  EXPECT_NEAR(StepEngine(direct, cost).time(bytes).value(), 0.001 + 3, 1e-9);
}

// Every fabric and kind of node, on whole nodes, and switches of which the last is not full.
std::vector<CommunicationCost> fabrics_of(int g, int nodes) {
  std::vector<Fabric> fabrics = {{}, rail(3), rail(1)};
  for (const int leaf : {1, 2, 3, 4}) {
    fabrics.push_back(fat_tree({{leaf, 2.5}}));
    fabrics.push_back(fat_tree({{leaf, 1.0}, {2, 3.0}}));
    fabrics.push_back(fat_tree({{leaf, 2.0}, {3, 1.0}}));
  }
  for (int x = 1; x <= nodes; ++x) {
    if (nodes % x != 0) continue;
    fabrics.push_back(torus({x, nodes / x}));
    if (nodes / x % 2 == 0) fabrics.push_back(torus({x, 2, nodes / x / 2}));
  }
  std::vector<CommunicationCost> costs;
  for (const Fabric& fabric : fabrics) {
    for (const IntraKind intra : {IntraKind::switched, IntraKind::ring, IntraKind::all_to_all}) {
      for (const NicUse use : {NicUse::striped, NicUse::affinity}) {
        CommunicationCost cost = by_hand(g, fabric);
        cost.fabric.hop_latency = Seconds{intra == IntraKind::ring ? 0 : 3e-3};
        cost.intra_kind = intra;
        cost.nic_use = fabric.kind == FabricKind::torus ? NicUse::striped : use;
        cost.nics_per_node = (g + 1) / 2;
        cost.gamma = SecondsPerByte{2e-10};
        costs.push_back(cost);
      }
    }
  }
  return costs;
}

TEST(Routes, CollapseForEveryAlgorithmOnEveryFabric) {
  int collapsed = 0;
  int all = 0;
  for (const auto& [g, nodes] : {std::pair{2, 6}, {4, 4}, {1, 16}, {2, 8}, {3, 8}, {4, 8}}) {
    const int p = g * nodes;
    const auto schedules = test::all_reduces(p);
    for (const CommunicationCost& cost : fabrics_of(g, nodes)) {
      for (const auto& [name, schedule] : schedules) {
        const StepEngine engine(schedule, cost);
        ++all;
        if (engine.positions() == p) continue;
        ++collapsed;
        const Completion found = engine.completion(Bytes{1e9});
        const Completion expected =
            StepEngine(schedule, cost, Collapse::none).completion(Bytes{1e9});
        for (int rank = 0; rank < p; ++rank)
          ASSERT_NEAR(found.of(rank).value(), expected.of(rank).value(),
                      1e-11 * expected.of(rank).value())
              << name << ", p=" << p << ", g=" << g << ", " << described(cost.fabric) << ", "
              << models::name(cost.intra_kind) << ", positions " << engine.positions();
      }
    }
  }
  EXPECT_GT(collapsed, all / 4);
}

TEST(Routes, CollapseToWhatTheFabricTellsApart) {
  const auto positions = [](const models::Schedule& schedule, const CommunicationCost& cost) {
    return StepEngine(schedule, cost).positions();
  };
  const models::Schedule ring = models::ring_all_reduce(2048);
  EXPECT_EQ(positions(ring, by_hand(8, fat_tree({{16, 2.0}}))), 128) << "a leaf";
  EXPECT_EQ(positions(ring, by_hand(8, fat_tree({{16, 2.0}, {4, 4.0}}))), 512) << "a pod";
  EXPECT_EQ(positions(ring, by_hand(8, fat_tree({{16, 1.0}}))), 8) << "nothing is told apart";
  EXPECT_EQ(positions(ring, by_hand(8, fat_tree({{300, 4.0}}))), 8) << "all below one leaf";
  EXPECT_EQ(positions(ring, by_hand(8, fat_tree({{20, 2.0}}))), 2048)
      << "the last leaf is not full";
  EXPECT_EQ(positions(ring, by_hand(8, torus({16, 16}))), 128) << "a row";
  EXPECT_EQ(positions(ring, by_hand(8, torus({16, 32}))), 2048) << "a part of a torus";
  EXPECT_EQ(positions(models::halving_doubling_all_reduce(2048), by_hand(8, torus({16, 16}))), 2048)
      << "exchanges with xor turn neither way";
  CommunicationCost rails = by_hand(8, rail(2));
  rails.nic_use = NicUse::affinity;
  rails.nics_per_node = 8;
  EXPECT_EQ(positions(ring, rails), 8);
}

}  // namespace
}  // namespace paceline::simulator

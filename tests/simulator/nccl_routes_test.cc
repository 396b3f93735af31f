// The least times of NCCL's rings and trees equal counts by hand, are no less than what every schedule
// needs, and grow where neighbours are on different leaves.
#include "simulator/engine/nccl_routes.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "models/cluster/catalog.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/engine/nccl_practice.h"

namespace paceline::simulator {
namespace {

models::Cluster of_nodes(int nodes, models::Fabric fabric = {}) {
  models::Cluster cluster = models::catalog_cluster("h200-ndr");
  cluster.nodes = nodes;
  cluster.fabric = std::move(fabric);
  return cluster;
}

models::Fabric leaves(int nodes, double oversubscription) {
  return {.kind = models::FabricKind::fat_tree, .levels = {{nodes, oversubscription}}};
}

NcclRoutes routes(const models::Cluster& cluster, int ranks) {
  return nccl_routes(communication_cost(cluster, nullptr, Bound::stated, ranks), ranks);
}

// Bytes/s of all NICs of a node.
double node_rate(const models::Cluster& cluster) {
  return cluster.nics_per_node * cluster.nic.bandwidth.value.value();
}

TEST(NcclRoutes, OnOneNodeThereIsNoBound) {
  EXPECT_EQ(routes(of_nodes(2), 8).ring, SecondsPerByte{0});
  EXPECT_EQ(routes(of_nodes(2), 8).tree, SecondsPerByte{0});
}

TEST(NcclRoutes, ARingSendsTwiceWhatANodeHasAndTreesTheSameBetweenTwo) {
  const models::Cluster cluster = of_nodes(16);
  for (const int ranks : {16, 32, 128}) {
    EXPECT_NEAR(routes(cluster, ranks).ring.value() * node_rate(cluster), 2.0 * (ranks - 1) / ranks,
                1e-9);
  }
  // Two nodes: each half goes up one tree and down the other, so that each NIC carries all bytes once.
  EXPECT_NEAR(routes(cluster, 16).tree.value() * node_rate(cluster), 1, 1e-9);
  // More: inside one tree, with two children and a parent, and a leaf of the other.
  EXPECT_NEAR(routes(cluster, 128).tree.value() * node_rate(cluster), 2, 1e-9);
}

// 16 nodes, four a leaf at 8:1: an uplink has 4 / 8 of a node's NICs. In order, one of a leaf's four
// edges leaves it; interleaved all four do.
TEST(NcclRoutes, OversubscribedLeavesSlowRingsByTheEdgesThatLeaveThem) {
  models::Cluster cluster = of_nodes(16, leaves(4, 8));
  const double uplink = node_rate(cluster) * 4 / 8;
  const double in_order = routes(cluster, 128).ring.value();
  EXPECT_NEAR(in_order * uplink, 2.0 * 127 / 128, 1e-9);
  for (int node = 0; node < 16; ++node) {
    for (int place = 0; place < 8; ++place)
      cluster.slots.push_back((node % 4 * 4 + node / 4) * 8 + place);
  }
  EXPECT_NEAR(routes(cluster, 128).ring.value() / in_order, 4, 1e-9);
}

TEST(NcclRoutes, ATorusHasOneLinkToTheNextNode) {
  const models::Cluster cluster = of_nodes(16, {.kind = models::FabricKind::torus, .shape = {16}});
  EXPECT_NEAR(routes(cluster, 128).ring.value() * node_rate(cluster), 2.0 * 127 / 128, 1e-9);
}

TEST(NcclRoutes, RailsCarryRingsWithoutTheirSpine) {
  models::Cluster cluster = of_nodes(16, {.kind = models::FabricKind::rail, .oversubscription = 8});
  cluster.nic_use = models::NicUse::affinity;
  EXPECT_NEAR(routes(cluster, 128).ring.value() * node_rate(cluster), 2.0 * 127 / 128, 1e-9);
}

// Whatever slots the ranks have, each node sends at least 2 (N-1)/N of each byte, and more
// oversubscription never helps.
RC_GTEST_PROP(NcclRoutes, AreBoundedFromBelowAndGrowWithOversubscription, ()) {
  const int nodes = *rc::gen::inRange(2, 17);
  const double ratio = *rc::gen::inRange(1, 9);
  models::Cluster cluster = of_nodes(nodes, leaves(*rc::gen::inRange(1, 5), ratio));
  std::vector<int> order(static_cast<std::size_t>(nodes));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1],
              order[static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(i)))]);
  for (const int node : order) {
    for (int place = 0; place < 8; ++place) cluster.slots.push_back(node * 8 + place);
  }
  const NcclRoutes bound = routes(cluster, 8 * nodes);
  const double least = 2.0 * (nodes - 1) / nodes / node_rate(cluster);
  RC_ASSERT(bound.ring.value() >= least * (1 - 1e-9));
  RC_ASSERT(bound.tree.value() >= least * (1 - 1e-9));
  cluster.fabric.levels[0].oversubscription = 1;
  RC_ASSERT(routes(cluster, 8 * nodes).ring.value() <= bound.ring.value() * (1 + 1e-9));
  RC_ASSERT(routes(cluster, 8 * nodes).tree.value() <= bound.tree.value() * (1 + 1e-9));
}

// Two GPUs of two nodes meet by their NICs, though eight would share a node.
TEST(NcclPractice, PlacementSaysWhichNodesThereAre) {
  models::Cluster cluster = of_nodes(2);
  constexpr Bytes large{1LL << 33};
  const auto bandwidth = [&](int ranks) {
    const NcclPractice practice(nccl_tables("2.28"), cluster, ranks,
                                communication_cost(cluster, nullptr, Bound::stated, ranks),
                                Bound::stated);
    return bus_bandwidth(ranks, large, practice.time(large)).value();
  };
  EXPECT_GT(bandwidth(2), 5 * cluster.nic.bandwidth.value.value());
  cluster.slots = {0, 8};
  EXPECT_NEAR(bandwidth(2) / cluster.nic.bandwidth.value.value(), 1, 0.01);
}

// No NIC carries more than its rate: on two nodes of eight Blackwell GPUs each byte passes once.
TEST(NcclPractice, NoTreeInSwitchesIsFasterThanItsNics) {
  models::Cluster cluster = of_nodes(2);
  cluster.device = models::catalog_device("b200");
  cluster.intra = models::catalog_link("nvlink5");
  constexpr Bytes large{1LL << 34};
  const NcclPractice practice(nccl_tables("2.28"), cluster, 16,
                              communication_cost(cluster, nullptr, Bound::stated, 16),
                              Bound::stated);
  EXPECT_GE(practice.time(large).value(), large.value() / node_rate(cluster));
  EXPECT_LE(practice.time(large).value(), 1.1 * large.value() / node_rate(cluster));
}

}  // namespace
}  // namespace paceline::simulator

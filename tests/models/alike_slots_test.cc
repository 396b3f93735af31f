#include "models/cluster/alike_slots.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline::models {
namespace {

using Slots = std::vector<int>;

// Nodes of four places, the ranks of which sit in these slots.
Cluster cluster_of(Slots slots, Fabric fabric = {}) {
  Cluster cluster;
  cluster.nodes = 16;
  cluster.ranks_per_node = 4;
  cluster.fabric = std::move(fabric);
  cluster.slots = std::move(slots);
  return cluster;
}

Fabric fabric_of(FabricKind kind) {
  Fabric fabric;
  fabric.kind = kind;
  return fabric;
}

TEST(AlikeSlots, NumberNodesAndPlacesAsRanksMeetThem) {
  EXPECT_EQ(alike_slots(cluster_of({8, 9, 10, 11, 0, 1, 2, 3})).slots,
            (Slots{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(alike_slots(cluster_of({63, 1, 61, 3, 60})).slots, (Slots{0, 4, 1, 5, 2}));
  EXPECT_EQ(alike_slots(cluster_of({})).slots, Slots{});
}

TEST(AlikeSlots, KeepWhatIsNextToWhatInARingAndInATorus) {
  Cluster ring = cluster_of({8, 10, 9, 11, 4});
  ring.intra_kind = IntraKind::ring;
  EXPECT_EQ(alike_slots(ring).slots, (Slots{0, 2, 1, 3, 4}));
  Fabric torus = fabric_of(FabricKind::torus);
  torus.shape = {4, 4};
  EXPECT_EQ(alike_slots(cluster_of({11, 9, 0}, torus)).slots, (Slots{8, 9, 0}));
}

// Two nodes under a leaf, two leaves under a pod: 5, 4 | 7 || 0.
TEST(AlikeSlots, KeepWhatIsUnderOneSwitch) {
  Fabric tree = fabric_of(FabricKind::fat_tree);
  tree.levels = {{2, 2.0}, {2, 2.0}};
  EXPECT_EQ(alike_slots(cluster_of({20, 16, 28, 0}, tree)).slots, (Slots{0, 4, 8, 16}));
}

TEST(AlikeSlots, KeepTheNicsOfRailsAndChangeThoseOfAFlatFabric) {
  Cluster cluster = cluster_of({3, 2, 0, 1});
  cluster.nics_per_node = 2;
  EXPECT_EQ(alike_slots(cluster).slots, (Slots{0, 1, 2, 3}));
  cluster.nic_use = NicUse::affinity;
  EXPECT_EQ(alike_slots(cluster).slots, (Slots{0, 1, 2, 3}));
  cluster.slots = {3, 0, 2, 1};
  EXPECT_EQ(alike_slots(cluster).slots, (Slots{0, 2, 1, 3}));
  cluster.fabric = fabric_of(FabricKind::rail);
  EXPECT_EQ(alike_slots(cluster).slots, (Slots{2, 0, 3, 1}));
  // Three NICs are not shared out equally.
  cluster.nics_per_node = 3;
  EXPECT_EQ(alike_slots(cluster).slots, (Slots{3, 0, 2, 1}));
}

TEST(AlikeSlots, KeepThePlacesBehindOnePcieSwitch) {
  Cluster cluster = cluster_of({3, 1, 2, 0});
  cluster.host.emplace();
  cluster.host->peer_to_peer = false;
  cluster.host->sockets = 2;
  cluster.host->switches = 2;
  EXPECT_EQ(alike_slots(cluster).slots, (Slots{0, 2, 1, 3}));
}

TEST(AlikeSlots, TakeTheSlownessOfANodeAlong) {
  Cluster cluster = cluster_of({8, 0, 9});
  cluster.slow_nodes = {{0, 0.5}, {2, 0.25}, {3, 0.125}};
  const AlikeSlots alike = alike_slots(cluster);
  EXPECT_EQ(alike.slots, (Slots{0, 4, 1}));
  EXPECT_EQ(alike.slow_nodes, (std::map<int, double>{{0, 0.25}, {1, 0.5}}));
}

}  // namespace
}  // namespace paceline::models

// Fabrics, nodes and placements as cluster files say them.
#include <gtest/gtest.h>

#include <string>

#include "models/base/error.h"
#include "models/cluster/placement.h"
#include "models/cluster/yaml.h"
#include "tests/support/error_of.h"

namespace paceline::models {
namespace {

// Its fabric stands in line 7.
const std::string head =
    "cluster: lab\n"
    "nodes: 16\n"
    "ranks_per_node: 4\n"
    "device: v100\n"
    "intra: nvlink2\n"
    "nic: {base: infiniband-edr, count: 2, use: affinity}\n";
const std::string striped_head =
    "cluster: lab\n"
    "nodes: 16\n"
    "ranks_per_node: 4\n"
    "device: v100\n"
    "intra: nvlink2\n"
    "nic: infiniband-edr\n";

Cluster parsed(const std::string& text) {
  return parse_cluster_yaml(text, "f");
}
std::string error_of(const std::string& text) {
  return test::error_of([&] { return parsed(text); });
}

TEST(ClusterFabric, FatTreesAreReadFromTheLeavesUp) {
  const Cluster two = parsed(head + "fabric: {kind: fat-tree, levels: [{nodes: 4}]}\n");
  EXPECT_EQ(two.fabric.kind, FabricKind::fat_tree);
  EXPECT_EQ(two.fabric.levels, (std::vector<FatTreeLevel>{{4, 1}}));
  const Cluster three = parsed(
      head +
      "fabric:\n  kind: fat-tree\n  levels:\n    - {nodes: 4, oversubscription: 2}\n"
      "    - {leaves: 2, oversubscription: 1.5}\n  hop_latency: {value: 0.3 us, high: 1 us}\n");
  EXPECT_EQ(three.fabric.levels, (std::vector<FatTreeLevel>{{4, 2}, {2, 1.5}}));
  EXPECT_DOUBLE_EQ(three.fabric.hop_latency.value(), 0.3e-6);
  ASSERT_TRUE(three.hop_latency.has_value());
  EXPECT_DOUBLE_EQ(three.hop_latency->high.value(), 1e-6);
  EXPECT_EQ(three.hop_latency->source, "f:12");
  EXPECT_EQ(three.hop_latency->provenance, Provenance::datasheet);
  EXPECT_EQ(described(three.fabric),
            "three-level fat tree, 4 nodes a leaf at 2:1, 2 leaves a pod at 1.5:1");
}

TEST(ClusterFabric, ToriAndRailsAreRead) {
  EXPECT_EQ(parsed(striped_head + "fabric: {kind: torus, shape: [4, 4]}\n").fabric.shape,
            (std::vector<int>{4, 4}));
  const Cluster cube =
      parsed(striped_head + "fabric: {kind: torus, shape: [4, 2, 2], hop_latency: 40 ns}\n");
  EXPECT_EQ(cube.fabric.shape, (std::vector<int>{4, 2, 2}));
  EXPECT_EQ(described(cube.fabric), "4 x 2 x 2 torus");
  const Cluster rails = parsed(head + "fabric: {kind: rail, oversubscription: 4}\n");
  EXPECT_EQ(rails.fabric.kind, FabricKind::rail);
  EXPECT_EQ(rails.fabric.oversubscription, 4);
  EXPECT_EQ(parsed(head + "fabric: {kind: rail}\n").fabric.oversubscription, 1);
  EXPECT_EQ(parsed(head + "fabric: {kind: flat}\n").fabric, Fabric{});
  EXPECT_EQ(parsed(head + "fabric: flat\n").fabric, Fabric{});
}

TEST(ClusterFabric, NodesAreSwitchesRingsOrAllToAll) {
  const auto with = [](const std::string& intra) {
    return "cluster: lab\nnodes: 2\nranks_per_node: 4\ndevice: v100\nintra: " + intra +
           "\nnic: infiniband-edr\n";
  };
  EXPECT_EQ(parsed(with("nvlink2")).intra_kind, IntraKind::switched);
  EXPECT_EQ(parsed(with("{base: nvlink2, topology: switch}")).intra_kind, IntraKind::switched);
  EXPECT_EQ(parsed(with("{base: nvlink2, topology: ring}")).intra_kind, IntraKind::ring);
  EXPECT_EQ(parsed(with("{base: nvlink2, topology: all-to-all}")).intra_kind,
            IntraKind::all_to_all);
  EXPECT_EQ(error_of(with("{base: nvlink2, topology: rign}")),
            "f:5:34: topology: unknown topology of a node 'rign'; did you mean 'ring'?");
  EXPECT_EQ(
      error_of("cluster: lab\nnodes: 2\nranks_per_node: 4\ndevice: v100\nintra: nvlink2\n"
               "nic: {base: infiniband-edr, topology: ring}\n"),
      "f:6:29: unknown key 'topology'; known: base, description, provenance, source, "
      "line_rate, bandwidth, latency, link, protocol, flows, bandwidth_by_ranks, told_latency, "
      "count, use, "
      "gpudirect, distance");
  EXPECT_EQ(error_of("cluster: lab\nnodes: 2\nranks_per_node: 300\ndevice: v100\n"
                     "intra: {base: nvlink2, topology: all-to-all}\nnic: infiniband-edr\n"),
            "f:5:34: a link between every two of 300 ranks; write switch or ring, or at most 256 "
            "ranks_per_node");
}

TEST(ClusterFabric, FaultsNameLineAndColumn) {
  const auto fabric = [](const std::string& text) {
    return error_of(striped_head + "fabric: " + text + "\n");
  };
  EXPECT_EQ(fabric("tree"),
            "f:7:9: fabric: unknown fabric 'tree'; known: flat, fat-tree, torus, rail");
  EXPECT_EQ(fabric("fat-tree"),
            "f:7:9: fabric: fat-tree needs more than its name; write {kind: fat-tree, levels: "
            "[{nodes: 16, oversubscription: 2}]}");
  EXPECT_EQ(fabric("[flat]"), "f:7:9: fabric is no single value; write fabric: value");
  EXPECT_EQ(fabric("{}"), "f:7:9: the fabric has no 'kind'; add kind: ...");
  EXPECT_EQ(fabric("{kind: fat-tree}"),
            "f:7:9: a fat-tree fabric has no 'levels'; add levels: ...");
  EXPECT_EQ(fabric("{kind: fat-tree, shape: [4, 4]}"),
            "f:7:26: unknown key 'shape'; known: kind, hop_latency, levels");
  EXPECT_EQ(fabric("{kind: flat, hop_latency: 1 us}"),
            "f:7:22: unknown key 'hop_latency'; known: kind");
  const std::string levels =
      "levels is no list of one or two levels; write [{nodes: 16, oversubscription: 2}] for leaves "
      "and a spine, and {leaves: 8, oversubscription: 4} behind it for three levels";
  EXPECT_EQ(fabric("{kind: fat-tree, levels: []}"), "f:7:34: " + levels);
  EXPECT_EQ(fabric("{kind: fat-tree, levels: {nodes: 4}}"), "f:7:34: " + levels);
  EXPECT_EQ(fabric("{kind: fat-tree, levels: [{nodes: 4}, {leaves: 2}, {pods: 2}]}"),
            "f:7:34: " + levels);
  EXPECT_EQ(fabric("{kind: fat-tree, levels: [{leaves: 4}]}"),
            "f:7:36: unknown key 'leaves'; known: nodes, oversubscription");
  EXPECT_EQ(fabric("{kind: fat-tree, levels: [{nodes: 0}]}"),
            "f:7:43: nodes: '0' is not a whole number from 1 to 16777216");
  EXPECT_EQ(fabric("{kind: fat-tree, levels: [{nodes: 4, oversubscription: 0.5}]}"),
            "f:7:64: oversubscription: '0.5' is not a number from 1 to 1000");
  EXPECT_EQ(fabric("{kind: fat-tree, levels: [{nodes: 4, oversubscription: 1e30}]}"),
            "f:7:64: oversubscription: '1e30' is not a number from 1 to 1000");
  EXPECT_EQ(fabric("{kind: fat-tree, levels: [{nodes: 10000}, {leaves: 10000}]}"),
            "f:7:60: 100000000 nodes under one switch are too many; at most 16777216");
  EXPECT_EQ(fabric("{kind: fat-tree, levels: [{nodes: 4}], hop_latency: 3}").substr(0, 31),
            "f:7:61: hop_latency: '3' has no");
  EXPECT_EQ(fabric("{kind: torus, shape: [4, 5]}"),
            "f:7:30: shape has 20 nodes; choose numbers whose product is the cluster's 16");
  EXPECT_EQ(fabric("{kind: torus, shape: [16777216, 16777216, 16777216]}"),
            "f:7:30: shape has too many nodes; choose numbers whose product is the cluster's 16");
  EXPECT_EQ(fabric("{kind: torus, shape: [4, -4]}"),
            "f:7:34: shape: '-4' is not a whole number from 1 to 16777216");
  EXPECT_EQ(fabric("{kind: torus, shape: 16}"),
            "f:7:30: shape is no list of two or three numbers; write the nodes along each axis, as "
            "in [8, 8]");
  EXPECT_EQ(fabric("{kind: rail}"),
            "f:7:9: rails without NICs of their own; write nic: {base: ..., count: 2 or more, use: "
            "affinity}");
  EXPECT_EQ(error_of(head + "fabric: {kind: torus, shape: [4, 4]}\n"),
            "f:7:9: a torus of NICs by affinity; a node's neighbours are joined by all its NICs: "
            "write use: striped");
}

TEST(ClusterFabric, PlacementsAreNamesOrLists) {
  EXPECT_EQ(parsed(head).placement, Placement::node_major);
  EXPECT_EQ(parsed(head + "placement: round-robin\n").placement, Placement::round_robin);
  const Cluster listed = parsed(head + "placement: [0, 4, 8, 63]\n");
  EXPECT_EQ(listed.slots, (std::vector<int>{0, 4, 8, 63}));
  EXPECT_EQ(described_placement(listed), "ranks in slots 0, 4, 8, 63");
  EXPECT_NO_THROW(check_ranks(listed, 4));
  EXPECT_EQ(test::error_of([&] { return check_ranks(listed, 5), 0; }),
            "5 ranks, and the placement lists slots for 4; choose 1 to 4, or list more slots");
  EXPECT_EQ(error_of(head + "placement: round\n"),
            "f:7:12: placement: unknown placement 'round'; did you mean 'round-robin'?");
  EXPECT_EQ(error_of(head + "placement: [0, 64]\n"),
            "f:7:12: slot 64 is none of cluster lab; write 0 to 63");
  EXPECT_EQ(error_of(head + "placement: [0, 1, 0]\n"),
            "f:7:12: slot 0 stands twice; a slot holds one rank");
  EXPECT_EQ(error_of(head + "placement: [0, x]\n"),
            "f:7:16: placement: 'x' is not a whole number from 0 to 16777216");
  EXPECT_EQ(error_of(head + "placement: []\n"),
            "f:7:12: a placement of no rank; write node-major, round-robin, or the slot of each "
            "rank");
}

const std::string platform_xml =
    "<platform version=\"4.1\"><cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-7\" "
    "speed=\"1Gf\" bw=\"10GBps\" lat=\"1us\"/></platform>";

Cluster with_platform(const std::string& text) {
  return parse_cluster_yaml(text, "dir/f.yaml", [](const std::string& path) {
    EXPECT_EQ(path, "dir/net.xml");
    return platform_xml;
  });
}

TEST(ClusterFabric, APlatformTakesThePlaceOfNodesNicsAndFabric) {
  const std::string text =
      "cluster: lab\ndevice: v100\nhost_link: pcie3-x16\nfabric: {platform: net.xml}\n";
  const Cluster alone = with_platform(text);
  ASSERT_NE(alone.platform, nullptr);
  EXPECT_EQ(alone.nodes, 8);
  EXPECT_EQ(alone.ranks_per_node, 1);
  const Cluster grouped = with_platform(text + "ranks_per_node: 4\n");
  EXPECT_EQ(grouped.nodes, 2);
  EXPECT_EQ(grouped.ranks(), 8);
  const auto fault = [&](const std::string& with) {
    return test::error_of([&] { return with_platform(with); });
  };
  EXPECT_EQ(fault(text + "ranks_per_node: 3\n"),
            "dir/f.yaml:4:20: the platform has 8 hosts, not 2 nodes x 3 ranks; each host is a "
            "rank: make the product of nodes and ranks_per_node equal");
  EXPECT_EQ(fault(text + "nic: infiniband-edr\n"),
            "dir/f.yaml:5:6: nic beside a platform; a platform has links of its own: leave it out");
  EXPECT_EQ(fault("cluster: lab\ndevice: v100\nfabric: {platform: net.xml}\n"),
            "dir/f.yaml:3:20: a platform and no host_link; add how samples get to a device, as in "
            "host_link: pcie3-x16");
  EXPECT_EQ(fault("cluster: lab\ndevice: v100\nfabric: {platform: net.xml, kind: flat}\n"),
            "dir/f.yaml:3:29: unknown key 'kind'; known: platform");
  EXPECT_EQ(test::error_of([&] { return parse_cluster_yaml(text, "f"); }),
            "f:4:20: a platform cannot be read here; give the cluster as a file");
}

}  // namespace
}  // namespace paceline::models

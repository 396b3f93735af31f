// Bandwidths that follow from what a link is, and the keys by which a cluster file says so.
#include "models/cluster/link_rules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "models/cluster/placement.h"
#include "models/cluster/yaml.h"

namespace paceline::models {
namespace {

const std::string box = "cluster: box\nnodes: 1\nranks_per_node: 4\ndevice: v100\n";
const std::string pair =
    "cluster: pair\nnodes: 2\nranks_per_node: 1\ndevice: v100\nintra: nvlink2\n";

std::string error_of(const std::string& text) {
  try {
    (void)parse_cluster_yaml(text, "f");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}
std::string nic_error(const std::string& nic) {
  return error_of(pair + "nic: " + nic + "\n");
}
std::string intra_error(const std::string& intra) {
  return error_of(box + "intra: " + intra + "\n");
}
std::string device_error(const std::string& device) {
  return error_of("cluster: box\nnodes: 1\nranks_per_node: 4\nintra: nvlink2\ndevice: " + device +
                  "\n");
}
Figure<BytesPerSecond> line(double gigabits) {
  return Figure<BytesPerSecond>::exact(BytesPerSecond{gigabits * 1e9 / 8}, Provenance::datasheet,
                                       "nominal");
}
double share(BytesPerSecond bandwidth, double gigabits) {
  return bandwidth / line(gigabits).value;
}

TEST(LinkRules, OneTcpFlowCarriesWhatAProcessorCan) {
  const auto slow = tcp_bandwidth(line(10), 2, 1);
  EXPECT_DOUBLE_EQ(share(slow.value, 10), 0.95);
  EXPECT_DOUBLE_EQ(share(slow.low, 10), 0.85);
  EXPECT_DOUBLE_EQ(share(slow.high, 10), 0.95);
  const auto fast = tcp_bandwidth(line(100), 3, 1);
  EXPECT_DOUBLE_EQ(share(fast.value, 100), 0.411);
  EXPECT_DOUBLE_EQ(share(fast.low, 100), 0.2055);
  EXPECT_DOUBLE_EQ(share(fast.high, 100), 0.822);
  EXPECT_EQ(fast.provenance, Provenance::assumed);
  EXPECT_NE(fast.source.find("3 TCP flows of 13.7 Gbit/s"), std::string::npos) << fast.source;
}

TEST(LinkRules, FourRanksANodeShareTheProcessorsOfTcp) {
  for (const int flows : {1, 2, 4}) {
    const auto alone = tcp_bandwidth(line(400), flows, 3);
    const auto shared = tcp_bandwidth(line(400), flows, 4);
    EXPECT_DOUBLE_EQ(shared.value / alone.value, 0.7);
    EXPECT_NEAR(shared.value / shared.low, 2.1, 1e-12);
    EXPECT_NEAR(shared.high / shared.value, 2.1, 1e-12);
  }
  // 1.4 flows of 13.7 Gbit/s, whatever the line.
  EXPECT_DOUBLE_EQ(share(tcp_bandwidth(line(25), 2, 4).value, 25), 1.4 * 13.7 / 25);
}

TEST(LinkRules, AThinLineIsTheLimitAndNotTheProcessors) {
  for (const int ranks_per_node : {1, 4, 8}) {
    const auto bandwidth = tcp_bandwidth(line(10), 2, ranks_per_node);
    EXPECT_DOUBLE_EQ(share(bandwidth.value, 10), 0.95);
    EXPECT_DOUBLE_EQ(share(bandwidth.high, 10), 0.95);
  }
  EXPECT_NEAR(share(tcp_bandwidth(line(10), 1, 4).low, 10), 0.7 * 1.37 / 2.1, 1e-12);
}

TEST(LinkRules, ACatalogueLinkWithTcpKnowsTheRanksOfItsNode) {
  const Cluster lone = parse_cluster_yaml(pair + "nic: tcp-25g\n", "f");
  EXPECT_DOUBLE_EQ(share(lone.nic.bandwidth.value, 25), 0.95);
  const Cluster full = catalog_cluster("aws-p3-16xlarge");
  EXPECT_DOUBLE_EQ(share(full.nic.bandwidth.value, 25), 1.4 * 13.7 / 25);
  const Cluster faster =
      parse_cluster_yaml(pair + "nic: {base: tcp-25g, line_rate: 50 Gbit/s, flows: 1}\n", "f");
  EXPECT_DOUBLE_EQ(share(faster.nic.bandwidth.value, 50), 0.274);
  const Cluster stated =
      parse_cluster_yaml(pair + "nic: {base: tcp-25g, bandwidth: 2 GB/s}\n", "f");
  EXPECT_DOUBLE_EQ(stated.nic.bandwidth.value.value(), 2e9);
  EXPECT_FALSE(stated.nic.tcp_flows);
  const Cluster own = parse_cluster_yaml(
      pair + "nic: {protocol: tcp, line_rate: 100 Gbit/s, latency: 40 us}\n", "f");
  EXPECT_DOUBLE_EQ(share(own.nic.bandwidth.value, 100), 0.274);
  EXPECT_TRUE(own.nic.is(LinkKind::ethernet));
  const Cluster instead = parse_cluster_yaml(pair + "nic: {base: roce-100g, protocol: tcp}\n", "f");
  EXPECT_DOUBLE_EQ(instead.nic.bandwidth.value.value(), own.nic.bandwidth.value.value());
}

// NVLink joins devices past their processors; PCIe does not, nor does a way through the host's memory.
TEST(LinkRules, MessagesOverNvlinkDoNotPassTheHost) {
  const std::string host = "host: {sockets: 2, crossing: 9 GB/s}\n";
  EXPECT_FALSE(passes_host(parse_cluster_yaml(box + "intra: nvlink2-mesh\n" + host, "f")));
  EXPECT_TRUE(passes_host(parse_cluster_yaml(box + "intra: pcie3-x16\n" + host, "f")));
  EXPECT_FALSE(passes_host(parse_cluster_yaml(box + "intra: pcie3-x16\n", "f")));
  EXPECT_TRUE(passes_host(parse_cluster_yaml(
      box + "intra: nvlink2\nhost: {peer_to_peer: false, lane: pcie3-x16}\n", "f")));
}

TEST(LinkRules, WithoutGpudirectHalfOfRdmaIsLeft) {
  const Cluster cluster =
      parse_cluster_yaml(pair + "nic: {base: infiniband-edr, gpudirect: false}\n", "f");
  EXPECT_FALSE(cluster.gpudirect);
  const Cluster own = parse_cluster_yaml(
      pair + "nic: {line_rate: 100 Gbit/s, latency: 5 us, link: infiniband, gpudirect: false}\n",
      "f");
  EXPECT_EQ(own.nic.bandwidth.value, cluster.nic.bandwidth.value);
  EXPECT_EQ(nic_error("{line_rate: 100 Gbit/s, latency: 5 us, link: infiniband}"),
            "f:6:6: nic has no 'bandwidth'; add bandwidth: ...");
  EXPECT_DOUBLE_EQ(share(cluster.nic.bandwidth.value, 100), 0.48);
  EXPECT_DOUBLE_EQ(share(cluster.nic.bandwidth.low, 100), 0.42);
  EXPECT_DOUBLE_EQ(share(cluster.nic.bandwidth.high, 100), 0.67);
  EXPECT_EQ(cluster.nic.bandwidth.provenance, Provenance::assumed);
  const Cluster stated = parse_cluster_yaml(
      pair + "nic: {base: infiniband-edr, gpudirect: false, bandwidth: 6 GB/s}\n", "f");
  EXPECT_DOUBLE_EQ(stated.nic.bandwidth.value.value(), 6e9);
  EXPECT_EQ(nic_error("{base: tcp-25g, gpudirect: false}"),
            "f:6:33: gpudirect of a NIC with TCP; leave it out: TCP goes through the host");
  EXPECT_NE(nic_error("{base: infiniband-edr, gpudirect: maybe}").find("f:6:"), std::string::npos);
}

TEST(LinkRules, ABandwidthMayDependOnTheRanksInUse) {
  const Cluster cluster = parse_cluster_yaml(
      box +
          "intra: {line_rate: 80 GB/s, latency: 3 us, bandwidth_by_ranks: {4: 36 GB/s, 2: {value: "
          "18 GB/s, low: 16 GB/s}}}\n",
      "f");
  EXPECT_DOUBLE_EQ(cluster.intra.bandwidth.value.value(), 36e9);
  const auto at = [&](int ranks) { return bandwidth_for(cluster.intra, ranks).value.value(); };
  EXPECT_DOUBLE_EQ(at(1), 18e9);
  EXPECT_DOUBLE_EQ(at(2), 18e9);
  EXPECT_DOUBLE_EQ(at(3), 18e9);
  EXPECT_DOUBLE_EQ(at(4), 36e9);
  EXPECT_DOUBLE_EQ(at(9), 36e9);
  EXPECT_DOUBLE_EQ(bandwidth_for(cluster.intra, 2).low.value(), 16e9);
  const Cluster one =
      parse_cluster_yaml(box + "intra: {base: nvlink1-mesh, bandwidth: 30 GB/s}\n", "f");
  EXPECT_DOUBLE_EQ(bandwidth_for(one.intra, 2).value.value(), 30e9);
}

TEST(LinkRules, RanksOnANodeByPlacement) {
  Cluster cluster;
  cluster.nodes = 4;
  cluster.ranks_per_node = 8;
  EXPECT_EQ(most_ranks_on_a_node(cluster, 0), 8);
  EXPECT_EQ(most_ranks_on_a_node(cluster, 3), 3);
  EXPECT_EQ(most_ranks_on_a_node(cluster, 12), 8);
  cluster.placement = Placement::round_robin;
  EXPECT_EQ(most_ranks_on_a_node(cluster, 12), 6);
  EXPECT_EQ(most_ranks_on_a_node(cluster, 9), 5);
  cluster.slots = {0, 8, 16, 1, 9, 2};
  EXPECT_EQ(most_ranks_on_a_node(cluster, 0), 3);
  EXPECT_EQ(most_ranks_on_a_node(cluster, 3), 1);
}

TEST(LinkRules, WrongLinksAreOneLine) {
  EXPECT_EQ(nic_error("{base: roce-25g, link: nvlnk}"),
            "f:6:29: link: unknown kind of link 'nvlnk'; did you mean 'nvlink'?");
  EXPECT_EQ(nic_error("{base: roce-25g, protocol: udp}"),
            "f:6:33: protocol: unknown protocol 'udp'; known: rdma, tcp");
  EXPECT_EQ(nic_error("{base: roce-25g, protocl: tcp}"),
            "f:6:23: unknown key 'protocl'; did you mean 'protocol'?");
  EXPECT_EQ(
      nic_error("{base: efa-100g, protocol: tcp}"),
      "f:6:33: TCP over a link of kind efa; write link: ethernet, infiniband or omni-path, or "
      "protocol: rdma");
  EXPECT_EQ(nic_error("{base: tcp-25g, protocol: rdma}"),
            "f:6:32: protocol: rdma, and the bandwidth is TCP's; add bandwidth: ...");
  EXPECT_EQ(nic_error("{base: roce-25g, flows: 2}"),
            "f:6:30: flows of a link without TCP; write protocol: tcp, or leave it out");
  EXPECT_EQ(nic_error("{base: tcp-25g, flows: 2, bandwidth: 1 GB/s}"),
            "f:6:29: flows beside a bandwidth; leave one of the two out");
  EXPECT_EQ(nic_error("{base: tcp-25g, flows: 65}"),
            "f:6:29: flows: '65' is not a whole number from 1 to 64");
  EXPECT_EQ(nic_error("{line_rate: 1 GB/s, latency: 1 us}"),
            "f:6:6: nic has no 'bandwidth'; add bandwidth: ...");
  EXPECT_EQ(nic_error("nvlink1-mesh"),
            "f:6:6: nic with a bandwidth by the ranks of a node; only intra takes "
            "bandwidth_by_ranks: state one bandwidth");
  EXPECT_EQ(intra_error("{base: nvlink1, bandwidth: 1 GB/s, bandwidth_by_ranks: {2: 1 GB/s}}"),
            "f:5:63: bandwidth twice; write bandwidth or bandwidth_by_ranks");
  EXPECT_EQ(
      intra_error("{base: nvlink1, bandwidth_by_ranks: {}}"),
      "f:5:44: bandwidth_by_ranks has no entry; write {2: 18 GB/s, 4: 36 GB/s}, each from this "
      "many ranks in use on");
  EXPECT_EQ(intra_error("{base: nvlink1, bandwidth_by_ranks: {two: 1 GB/s}}"),
            "f:5:50: bandwidth_by_ranks: 'two' is not a whole number from 1 to 4096");
  EXPECT_EQ(intra_error("{base: nvlink1, bandwidth_by_ranks: {2: 1 GB/s, 02: 1 GB/s}}"),
            "f:5:60: 2 ranks stand twice; write each number once");
  EXPECT_NE(intra_error("{base: nvlink1, bandwidth_by_ranks: 3}").find("f:5:"), std::string::npos);
  EXPECT_NE(intra_error("{base: nvlink1, bandwidth_by_ranks: {2: fast}}").find("f:5:"),
            std::string::npos);
  EXPECT_NE(intra_error("{base: nvlink1, bandwidth_by_ranks: {[2]: 1 GB/s}}").find("f:5:"),
            std::string::npos);
}

TEST(LinkRules, WrongDevicesAreOneLine) {
  EXPECT_EQ(device_error("{base: v100, multiprocessors: 0}"),
            "f:5:39: multiprocessors: '0' is not a whole number from 1 to 10000");
  EXPECT_EQ(device_error("{base: v100, cooling: geforc}"),
            "f:5:31: cooling: unknown kind of cooling 'geforc'; did you mean 'geforce'?");
  EXPECT_EQ(device_error("{base: v100, reduction: while-receivin}"),
            "f:5:33: reduction: unknown time of a reduction 'while-receivin'; did you mean "
            "'while-receiving'?");
}

TEST(LinkRules, GpusReduceWhileTheyReceive) {
  for (const CatalogEntry& entry : catalog_devices()) {
    const Device device = catalog_device(entry.name);
    const bool is_gpu =
        entry.description.starts_with("NVIDIA") || entry.description.starts_with("AMD");
    EXPECT_EQ(device.multiprocessors.has_value(), is_gpu) << entry.name;
    EXPECT_EQ(device.reduction == Reduction::while_receiving, device.library != VendorLibrary::mpi)
        << entry.name;
    EXPECT_EQ(device.cooling == Cooling::geforce,
              entry.description.starts_with("NVIDIA GeForce") || entry.name == "titan-rtx")
        << entry.name;
  }
  const std::string own = "cluster: box\nnodes: 1\nranks_per_node: 4\nintra: nvlink2\ndevice: ";
  const std::string core = "{fp32: 1 TFLOP/s, memory_bandwidth: 9 GB/s, memory: 4 GB";
  const auto reduction = [&](const std::string& device) {
    return parse_cluster_yaml(own + device + "\n", "f").device.reduction;
  };
  EXPECT_EQ(reduction(core + "}"), Reduction::after_receiving);
  EXPECT_EQ(reduction(core + ", multiprocessors: 80}"), Reduction::while_receiving);
  EXPECT_EQ(reduction("{base: v100, reduction: after-receiving}"), Reduction::after_receiving);
}

TEST(LinkRules, AHostSaysWhatRanksOfANodeShare) {
  const Cluster cluster = parse_cluster_yaml(
      box +
          "intra: pcie3-x16\nhost: {peer_to_peer: false, sockets: 2, crossing: 9 GB/s, "
          "memory_bandwidth: 60 GB/s, lane: pcie4-x16, switches: 2, uplink: {value: 12 GB/s, low: "
          "10 GB/s, source: a manual}}\n",
      "f");
  ASSERT_TRUE(cluster.host);
  EXPECT_FALSE(cluster.host->peer_to_peer);
  EXPECT_EQ(cluster.host->sockets, 2);
  EXPECT_EQ(cluster.host->switches, 2);
  EXPECT_DOUBLE_EQ(cluster.host->crossing->value.value(), 9e9);
  EXPECT_DOUBLE_EQ(cluster.host->memory_bandwidth->value.value(), 60e9);
  EXPECT_EQ(cluster.host->uplink->source, "a manual");
  EXPECT_EQ(cluster.host->lane->name, "pcie4-x16");
}

TEST(LinkRules, WrongHostsAreOneLine) {
  const auto error = [](const std::string& host, const std::string& intra = "pcie3-x16") {
    return error_of(box + "intra: " + intra + "\nhost: " + host + "\n");
  };
  EXPECT_EQ(error("{peer_to_per: false}"),
            "f:6:8: unknown key 'peer_to_per'; did you mean 'peer_to_peer'?");
  EXPECT_EQ(error("{crossing: 9 GB/s}"),
            "f:6:18: crossing without sockets; add sockets: 2, or as many as a node has");
  EXPECT_EQ(error("{uplink: 9 GB/s}"),
            "f:6:16: uplink without switches; add switches: 2, or as many as a node has");
  EXPECT_EQ(error("{sockets: 5}"),
            "f:6:17: 5 sockets for 4 ranks; at most one for each rank of a node");
  EXPECT_EQ(error("{sockets: 0}"), "f:6:17: sockets: '0' is not a whole number from 1 to 256");
  EXPECT_EQ(error("{peer_to_peer: false}", "pcie3-staged"),
            "f:6:22: the way through the host twice: the link has it in its bandwidth; write lane: "
            "pcie3-x16 or as it is, or leave peer_to_peer out");
  EXPECT_EQ(
      error("{sockets: 2}", "{base: nvlink2, topology: ring}"),
      "f:6:7: host, and ranks joined by links between them; write topology: switch for intra, "
      "or leave it out");
  EXPECT_NE(error("{memory_bandwidth: 60}").find("f:6:"), std::string::npos);
  EXPECT_NE(error("{lane: pcie9}").find("unknown link 'pcie9'"), std::string::npos);
  EXPECT_NE(error("{lane: nvlink1-mesh}").find("bandwidth_by_ranks"), std::string::npos);
  EXPECT_NE(error("[1, 2]").find("f:6:"), std::string::npos);
}

TEST(LinkRules, OneNodeNeedsNoNic) {
  const Cluster cluster = parse_cluster_yaml(box + "intra: nvlink2\n", "f");
  EXPECT_FALSE(cluster.has_nic());
  EXPECT_NO_THROW(check_ranks(cluster, 4));
  try {
    check_ranks(cluster, 5);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(
        error.what(),
        "5 ranks on cluster box, one node without nic; choose 1 to 4, or add nodes and nic "
        "to its file");
  }
  EXPECT_EQ(error_of("cluster: box\nnodes: 2\nranks_per_node: 4\ndevice: v100\nintra: nvlink2\n"),
            "f:1:1: the cluster has no 'nic'; add nic: ...");
}

// The farther a NIC, the less of it; what nobody says holds all of that.
TEST(LinkRules, ANicAwayFromItsDevicesHasLess) {
  const auto nic_of = [](const std::string& keys, const std::string& device = "a100") {
    return parse_cluster_yaml("cluster: box\nnodes: 2\nranks_per_node: 4\ndevice: " + device +
                                  "\nintra: nvlink3\nnic: {base: infiniband-hdr" + keys + "}\n",
                              "f")
        .nic.bandwidth;
  };
  const Figure<BytesPerSecond> beside = catalog_link("infiniband-hdr").bandwidth;
  const Figure<BytesPerSecond> unknown = nic_of(", count: 2");
  Figure<BytesPerSecond> nearer = beside;
  for (const auto& [distance, word] : nic_distances) {
    const Figure<BytesPerSecond> at = nic_of(fmt::format(", count: 2, distance: {}", word));
    EXPECT_LE(at.value, nearer.value) << word;
    EXPECT_LE(at.low, nearer.low) << word;
    EXPECT_LE(at.low, at.value) << word;
    EXPECT_LE(at.value, at.high) << word;
    EXPECT_LE(unknown.low, at.value) << word;
    EXPECT_GE(unknown.high, at.value) << word;
    nearer = at;
  }
  EXPECT_LT(nearer.value, 0.6 * beside.value);
  EXPECT_EQ(nic_of(", count: 2, distance: pxb"), beside);
  EXPECT_EQ(nic_of(", count: 4"), beside) << "a NIC for each GPU";
  EXPECT_EQ(nic_of(", count: 2, gpudirect: true"), beside);
  EXPECT_EQ(nic_of(", count: 2", "xeon-8160"), beside) << "processors";
  EXPECT_EQ(nic_of(", bandwidth: 20 GB/s").value, BytesPerSecond{20e9}) << "as stated";
  EXPECT_EQ(nic_error("{base: infiniband-hdr, distance: far}"),
            "f:6:39: distance: unknown distance of a NIC 'far'; known: pix, pxb, phb, node, sys");
  EXPECT_EQ(nic_error("{base: tcp-25g, distance: sys}"),
            "f:6:32: distance of a NIC with TCP; leave it out: TCP goes through the host");
}

}  // namespace
}  // namespace paceline::models

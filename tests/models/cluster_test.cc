#include <gtest/gtest.h>

#include <random>

#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "models/cluster/placement.h"
#include "models/cluster/yaml.h"
#include "tests/support/error_of.h"

namespace paceline::models {
namespace {

using test::error_of;

const std::string good =
    "cluster: lab\n"
    "nodes: 16\n"
    "ranks_per_node: 8\n"
    "device: v100\n"
    "intra: nvlink2\n"
    "nic: {base: roce-25g, count: 2, latency: 3 us, use: affinity, distance: pxb}\n";

std::string yaml_error(const std::string& text) {
  return error_of([&] { return parse_cluster_yaml(text, "lab.yaml"); });
}
std::string with(const std::string& from, const std::string& to) {
  std::string text = good;
  text.replace(text.find(from), from.size(), to);
  return text;
}

template <class Q>
void check_figure(const Figure<Q>& figure, const std::string& what) {
  EXPECT_FALSE(figure.source.empty()) << what;
  EXPECT_LE(figure.low, figure.value) << what;
  EXPECT_LE(figure.value, figure.high) << what;
}

TEST(Catalog, EveryFigureNamesItsSourceAndLiesInItsInterval) {
  ASSERT_GE(catalog_devices().size(), 9u);
  for (const CatalogEntry& entry : catalog_devices()) {
    const Device d = catalog_device(entry.name);
    EXPECT_FALSE(entry.description.empty());
    EXPECT_EQ(d.name, entry.name);
    check_figure(d.fp32, entry.name);
    for (const auto& rate : {d.tf32, d.fp16, d.fp16_tensor, d.bf16}) {
      if (rate) check_figure(*rate, entry.name);
    }
    check_figure(d.memory_bandwidth, entry.name);
    check_figure(d.memory, entry.name);
    check_figure(d.compute_efficiency, entry.name);
    check_figure(d.memory_efficiency, entry.name);
  }
  ASSERT_GE(catalog_links().size(), 17u);
  for (const CatalogEntry& entry : catalog_links()) {
    const Link link = catalog_link(entry.name);
    check_figure(link.line_rate, entry.name);
    check_figure(link.bandwidth, entry.name);
    check_figure(link.latency, entry.name);
    EXPECT_LE(link.bandwidth.high, link.line_rate.value) << entry.name;
  }
  ASSERT_GE(catalog_clusters().size(), 43u);
  for (const CatalogEntry& entry : catalog_clusters())
    EXPECT_FALSE(catalog_cluster(entry.name).source.empty());
}

TEST(Catalog, ClustersOfTheSeeds) {
  const Cluster jizhi = catalog_cluster("jizhi-p40");
  EXPECT_EQ(jizhi.ranks(), 2048);
  EXPECT_EQ(jizhi.device.name, "p40");
  EXPECT_NEAR(jizhi.device.fp32.value.value(), 11.76e12, 1e10);
  EXPECT_EQ(jizhi.nic.name, "roce-100g");
  EXPECT_EQ(catalog_cluster("sony-abci").nics_per_node, 2);
  EXPECT_EQ(catalog_cluster("sony-abci").ranks(), 4352);
  EXPECT_EQ(catalog_cluster("h200-ndr").ranks(), 65536);
  EXPECT_EQ(catalog_cluster("goyal-p100").ranks(), 256);
  EXPECT_EQ(catalog_cluster("aws-p3-16xlarge").ranks_per_node, 8);
}

TEST(Catalog, UnknownNamesSuggestTheNearest) {
  EXPECT_EQ(error_of([] { return catalog_cluster("jizhi-p4"); }),
            "unknown cluster 'jizhi-p4'; did you mean 'jizhi-p40'?");
  EXPECT_EQ(error_of([] { return catalog_link("nvlink22"); }),
            "unknown link 'nvlink22'; did you mean 'nvlink2'?");
}

TEST(ClusterYaml, OverridesFiguresOfABase) {
  const Cluster lab = parse_cluster_yaml(good, "lab.yaml");
  EXPECT_EQ(lab.ranks(), 128);
  EXPECT_EQ(lab.nics_per_node, 2);
  EXPECT_EQ(lab.nic_use, NicUse::affinity);
  EXPECT_DOUBLE_EQ(lab.nic.latency.value.value(), 3e-6);
  EXPECT_EQ(lab.nic.latency.provenance, Provenance::datasheet);
  EXPECT_EQ(lab.nic.latency.source, "lab.yaml:6");
  EXPECT_EQ(lab.nic.bandwidth, catalog_link("roce-25g").bandwidth);
}

TEST(ClusterYaml, InlineDevicesAndLinks) {
  const Cluster lab = parse_cluster_yaml(
      "cluster: own\nnodes: 2\nranks_per_node: 1\n"
      "device: {name: toy, fp32: 1 TFLOP/s, memory_bandwidth: 100 GB/s, memory: 8 GB}\n"
      "intra: {line_rate: 10 GB/s, bandwidth: 9 GB/s, latency: 0 s}\n"
      "nic: {line_rate: 10 Gbit/s, bandwidth: {value: 1 GB/s, low: 0.9 GB/s, high: 1.1 GB/s, "
      "provenance: measured, source: iperf}, latency: 20 us}\n"
      "storage: 2 GB/s\ndecode: 12000 images/s\n",
      "own.yaml");
  EXPECT_EQ(lab.device.name, "toy");
  EXPECT_EQ(lab.device.compute_efficiency.provenance, Provenance::assumed);
  // It names no multiprocessors, and is no GPU.
  EXPECT_EQ(lab.device.roofline_efficiency.provenance, Provenance::assumed);
  EXPECT_EQ(lab.nic.bandwidth.provenance, Provenance::measured);
  EXPECT_EQ(lab.nic.bandwidth.source, "iperf");
  EXPECT_DOUBLE_EQ(lab.decode_per_node->value.value(), 12000);
}

TEST(ClusterYaml, FaultsNameLineAndColumn) {
  EXPECT_EQ(yaml_error(with("latency: 3 us", "latency: 3")),
            "lab.yaml:6:42: latency: '3' has no unit; write one of s, ms, us, ns, as in 2 us");
  EXPECT_EQ(yaml_error(with("latency: 3 us", "bandwidth: -3 GB/s")),
            "lab.yaml:6:44: bandwidth: '-3 GB/s' is negative; a bandwidth is at least 0");
  EXPECT_EQ(yaml_error(with("latency: 3 us", "bandwidth: 0 GB/s")),
            "lab.yaml:6:44: bandwidth: '0 GB/s' is not more than 0");
  EXPECT_EQ(yaml_error(with("latency: 3 us", "latncy: 3 us")),
            "lab.yaml:6:33: unknown key 'latncy'; did you mean 'latency'?");
  EXPECT_EQ(yaml_error(with("v100", "v101")),
            "lab.yaml:4:9: device: unknown device 'v101'; did you mean 'v100'?");
  EXPECT_EQ(yaml_error(with("nodes: 16\n", "")),
            "lab.yaml:1:1: the cluster has no 'nodes'; add nodes: ...");
  EXPECT_EQ(yaml_error(with("nodes: 16", "nodes: 0")),
            "lab.yaml:2:8: nodes: '0' is not a whole number from 1 to 16777216");
  EXPECT_EQ(yaml_error(with("nodes: 16", "nodes: 16000000")),
            "lab.yaml:2:8: 16000000 nodes x 8 ranks are too many; at most 16777216 ranks");
  EXPECT_EQ(yaml_error(good + "fabric: torus\n"),
            "lab.yaml:7:9: fabric: torus needs more than its name; write {kind: torus, shape: [8, "
            "8]}");
  EXPECT_EQ(yaml_error(with("count: 2", "count: 9")),
            "lab.yaml:6:30: 9 NICs for 8 ranks with affinity; a rank uses one NIC: write use: "
            "striped, or at most one NIC for each rank");
  EXPECT_EQ(
      yaml_error(with("latency: 3 us", "latency: {value: 3 us, low: 4 us}")),
      "lab.yaml:6:42: latency: its value is not between low and high; write low <= value <= high");
  EXPECT_EQ(yaml_error("a: [1, 2\n"),
            "lab.yaml:2:1: this is not YAML: end of sequence flow not found");
  EXPECT_EQ(yaml_error(""),
            "lab.yaml:1:1: the file is empty; write a description (docs/formats.md)");
  EXPECT_EQ(yaml_error(good + "nodes: 3\n"),
            "lab.yaml:7:1: key 'nodes' stands twice; keep one of them");
}

TEST(ClusterYaml, DamagedFilesGiveOneLine) {
  std::mt19937 random(99);
  for (int trial = 0; trial < 3000; ++trial) {
    std::string text = good;
    for (int i = 0; i < 3; ++i) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0)
        text[at] = static_cast<char>(random() % 256);
      else
        text.insert(at, std::string(1, "[]{}:,-\n#&*!|>'\""[random() % 16]));
    }
    EXPECT_EQ(yaml_error(text).find('\n'), std::string::npos);
  }
}

TEST(Placement, RanksMustFit) {
  const Cluster jizhi = catalog_cluster("jizhi-p40");
  EXPECT_NO_THROW(check_ranks(jizhi, 2048));
  EXPECT_EQ(error_of([&] {
              check_ranks(jizhi, 4096);
              return 0;
            }),
            "4096 ranks do not fit cluster jizhi-p40; choose 1 to 2048 (256 nodes x 8 ranks)");
  EXPECT_THROW(check_ranks(jizhi, 0), InputError);
}

// A rack of 18 hosts is one node; what lists hosts counts 18 of them.
TEST(Placement, HostsOfANode) {
  const Cluster rack = catalog_cluster("gb200-nvl72");
  EXPECT_EQ(used_nodes(rack, 72), 1);
  EXPECT_EQ(used_hosts(rack, 72), 18);
  EXPECT_EQ(used_nodes(rack, 73), 2);
  EXPECT_EQ(used_hosts(rack, 73), 19);
  EXPECT_EQ(used_hosts(catalog_cluster("h200-ndr"), 16), 2);
}

}  // namespace
}  // namespace paceline::models

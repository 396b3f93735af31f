#include "models/cluster/other_nic.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "models/cluster/link_rules.h"
#include "models/cluster/yaml.h"

namespace paceline::models {
namespace {

TEST(OtherNic, TakesThePlaceOfTheClustersOwn) {
  const Cluster own = catalog_cluster("aws-p3-16xlarge");
  const Cluster other =
      with_nic(own, {.link = catalog_link("infiniband-edr"), .count = 8, .bandwidth = {}});
  EXPECT_EQ(other.nic.name, "infiniband-edr");
  EXPECT_EQ(other.nic.bandwidth, catalog_link("infiniband-edr").bandwidth);
  EXPECT_EQ(other.nics_per_node, 8);
  EXPECT_EQ(other.intra.bandwidth, own.intra.bandwidth);
  EXPECT_TRUE(own.price);
  EXPECT_FALSE(other.price) << "the price is that of a node with its own NIC";
}

TEST(OtherNic, IsWhatTheSameClusterReadFromAFileHas) {
  for (const char* link : {"tcp-25g", "tcp-100g", "roce-100g"}) {
    const std::string text =
        "cluster: file\nnodes: 4\nranks_per_node: 8\ndevice: v100\nintra: nvlink2\nnic: ";
    const Cluster read = parse_cluster_yaml(text + link, "a.yaml");
    const Cluster with = with_nic(parse_cluster_yaml(text + "infiniband-hdr", "b.yaml"),
                                  {.link = catalog_link(link)});
    EXPECT_EQ(with.nic.bandwidth, read.nic.bandwidth) << link;
    EXPECT_EQ(with.nic.latency, read.nic.latency) << link;
  }
}

TEST(OtherNic, ThatReachesNoDeviceHasTheBandwidthOfTheRule) {
  const Cluster own = parse_cluster_yaml(
      "cluster: file\nnodes: 4\nranks_per_node: 8\ndevice: v100\nintra: nvlink2\nnic: {base: "
      "infiniband-edr, gpudirect: false}",
      "a.yaml");
  const Link link = catalog_link("infiniband-hdr");
  EXPECT_EQ(with_nic(own, {.link = link}).nic.bandwidth,
            bandwidth_without_gpudirect(link.line_rate));
}

TEST(OtherNic, MayBeABandwidthAlone) {
  const Cluster own = catalog_cluster("h200-ndr");
  const auto stated =
      Figure<BytesPerSecond>::exact(BytesPerSecond{10e9}, Provenance::datasheet, "--nic");
  const Cluster other = with_nic(own, {.bandwidth = stated});
  EXPECT_EQ(other.nic.bandwidth, stated);
  EXPECT_EQ(other.nic.latency, own.nic.latency);
  EXPECT_EQ(other.nics_per_node, own.nics_per_node);
}

TEST(OtherNic, ThatDoesNotFitIsRefused) {
  const Cluster p3 = catalog_cluster("aws-p3-16xlarge");
  for (const char* link : {"nvlink4", "pcie3-x16", "pcie3-staged", "nvlink2-mesh"})
    EXPECT_THROW(static_cast<void>(with_nic(p3, {.link = catalog_link(link)})), InputError) << link;
  const Cluster rails = parse_cluster_yaml(
      "cluster: file\nnodes: 4\nranks_per_node: 8\ndevice: v100\nintra: nvlink2\nnic: {base: "
      "infiniband-edr, count: 8, use: affinity}\nfabric: {kind: rail}",
      "a.yaml");
  const Link link = catalog_link("infiniband-hdr");
  EXPECT_THROW(static_cast<void>(with_nic(rails, {.link = link, .count = 1})), InputError);
  EXPECT_THROW(static_cast<void>(with_nic(rails, {.link = link, .count = 9})), InputError);
  EXPECT_EQ(with_nic(rails, {.link = link, .count = 2}).nics_per_node, 2);
  const Cluster one = parse_cluster_yaml(
      "cluster: file\nnodes: 1\nranks_per_node: 8\ndevice: v100\nintra: nvlink2", "a.yaml");
  EXPECT_THROW(
      static_cast<void>(with_nic(one, {.bandwidth = Figure<BytesPerSecond>::exact(
                                           BytesPerSecond{1e9}, Provenance::datasheet, "--nic")})),
      InputError);
}

TEST(FasterNic, ScalesTheRateAndItsInterval) {
  const Cluster own = catalog_cluster("aws-p3-16xlarge");
  const Cluster fast = with_faster_nic(own, 2);
  EXPECT_EQ(fast.nic.bandwidth.value, 2 * own.nic.bandwidth.value);
  EXPECT_EQ(fast.nic.bandwidth.low, 2 * own.nic.bandwidth.low);
  EXPECT_EQ(fast.nic.bandwidth.high, 2 * own.nic.bandwidth.high);
  EXPECT_EQ(fast.nic.line_rate.value, 2 * own.nic.line_rate.value);
  EXPECT_EQ(fast.nic.latency, own.nic.latency);
  EXPECT_EQ(fast.price, own.price);
}

}  // namespace
}  // namespace paceline::models

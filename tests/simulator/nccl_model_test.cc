#include "simulator/cost/nccl_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "tests/support/error_of.h"

namespace paceline::simulator {
namespace {

using test::error_of;
using enum NcclAlgorithm;
using enum NcclProtocol;

constexpr double us = 1e6;

NcclModel model(const models::Cluster& cluster, int ranks, const char* version = "2.28",
                CpuVendor cpu = CpuVendor::intel) {
  return {nccl_tables(version), cluster, ranks, models::Collective::all_reduce, cpu};
}

NcclModel h200(int ranks, const char* version = "2.28") {
  return model(models::catalog_cluster("h200-ndr"), ranks, version);
}

double time_us(const NcclModel& model, NcclAlgorithm algorithm, NcclProtocol protocol,
               double bytes) {
  return us * model.time(algorithm, protocol, Bytes{bytes}).value().value();
}

double gbps(const NcclModel& model, NcclAlgorithm algorithm, NcclProtocol protocol) {
  return model.bandwidth(algorithm, protocol).value() / 1e9;
}

// Nodes of `gpus` Hoppers with NVLink of `nvlink` bytes/s and NICs of `nic` bytes/s, beside the
// catalogue's.
models::Cluster nodes_of(int gpus, const char* device, double nvlink, int nics, double nic) {
  models::Cluster cluster = models::catalog_cluster("h200-ndr");
  cluster.device = models::catalog_device(device);
  cluster.ranks_per_node = gpus;
  cluster.intra.line_rate.value = BytesPerSecond{nvlink};
  cluster.nics_per_node = nics;
  cluster.nic.line_rate.value = BytesPerSecond{nic};
  return cluster;
}

// The derivations below are by hand from tuning.cc of v2.28.3-1; NCCL's GB/s and microseconds.
//
// 2 nodes of 8 H200. NVLink carries 450 x 20.6/25 = 370.8, a NIC 50. Ring: 48 fits 7 times (336),
// 45 fits 8 times (360) and no slower speed has more, so 8 x 45. Tree: 8 channels of at most 370.8
// x 8/7 / 8, so 8 x 48; from Hopper on, with a NIC for each GPU, through one GPU (0.85).
TEST(NcclModel, HandComputedOnTwoNodesOfEightH200) {
  const NcclModel m = h200(16);
  EXPECT_EQ(m.nodes(), 2);
  EXPECT_EQ(m.graph(ring).channels, 8);
  EXPECT_EQ(m.graph(ring).intra_gbps, 45);
  EXPECT_EQ(m.graph(tree).channels, 8);
  EXPECT_EQ(m.graph(tree).intra_gbps, 48);
  EXPECT_TRUE(m.graph(tree).through_one_rank);
  EXPECT_EQ(m.communicator_channels(), 16);

  // bus bandwidth 360; times 16/30. 28 steps inside at 3.4, 2 between at 14. From 64 B x 16
  // channels x 16 ranks = 16 KiB on, latency x 1.4.
  EXPECT_NEAR(gbps(m, ring, simple), 360.0 * 16 / 30, 1e-9);
  EXPECT_NEAR(us * m.latency(ring, simple).value(), 8.4 + 28 * 3.4 + 2 * 14.0, 1e-9);
  EXPECT_NEAR(time_us(m, ring, simple, 16383), 131.6 + 16383 / 192e3, 1e-9);
  EXPECT_NEAR(time_us(m, ring, simple, 16384), 1.4 * 131.6 + 16384 / 192e3, 1e-9);
  // LL: min(39.0 of two nodes with Intel, 360 / 2). 28 steps of max(0.6, 1.0), 2 of 2.7.
  EXPECT_NEAR(time_us(m, ring, ll, 1024), 6.6 + 28 * 1.0 + 2 * 2.7 + 1.024 / (39.0 * 16 / 30),
              1e-9);
  // LL128: min(0.92 x 360, 8 x 36.7) = 293.6.
  EXPECT_NEAR(time_us(m, ring, ll128, 67108864),
              14 + 28 * 1.9 + 2 * 4.0 + 67108.864 / (293.6 * 16 / 30), 1e-9);
  // Trees: min(0.92 x 384, 8 x 41.4) = 331.2. LL: min(331.2 / 3.8, 39.0) x 0.85 / 2, 1 KiB is 2^4 x
  // 64 B: correction 0.9. Latency 2 (7 x 0.6 + 1 x 5.0).
  EXPECT_NEAR(time_us(m, tree, ll, 1024), 6.8 + 18.4 + 1.024 / (39.0 * 0.85 / 2 * 0.9), 1e-9);
  // Simple at 64 MiB = 2^20 x 64 B: 0.8.
  EXPECT_NEAR(time_us(m, tree, simple, 67108864),
              8.4 + 2 * (7 * 4.0 + 14.0) + 67108.864 / (331.2 * 0.85 / 2 * 0.8), 1e-9);
  // LL128: min(331.2 x 0.9375, 8 x 36.7).
  EXPECT_NEAR(time_us(m, tree, ll128, 67108864),
              14 + 2 * (7 * 1.25 + 8.5) + 67108.864 / (293.6 * 0.85 / 2 * 0.9), 1e-9);
}

// One node: ring 6 x 60 = 360 of 370.8, split into 12 x 30; tree 12 x 30 (12 x 40 is more than
// 423.8).
TEST(NcclModel, HandComputedOnOneNodeOfEightH200) {
  const NcclModel m = h200(8);
  EXPECT_EQ(m.graph(ring).channels, 12);
  EXPECT_EQ(m.graph(ring).intra_gbps, 30);
  EXPECT_EQ(m.graph(tree).intra_gbps, 30);
  EXPECT_FALSE(m.graph(tree).through_one_rank);
  EXPECT_NEAR(time_us(m, ring, simple, 1e6), 8.4 + 14 * 3.4 + 1e3 / (360.0 * 8 / 14), 1e-9);
  EXPECT_NEAR(time_us(m, ring, ll, 256), 6.6 + 14 * 0.6 + 0.256 / (141.0 * 8 / 14), 1e-9);
  // min(0.92 x 360, 12 x 38.7) = 331.2; LL128: 7/9 of it; 256 B: correction 1.
  EXPECT_NEAR(time_us(m, tree, ll128, 256), 14 + 14 * 1.25 + 0.256 / (331.2 * 7 / 9 / 2), 1e-9);
}

// 128 nodes of 8 P40 on PCIe, one 100 Gbit/s NIC: one channel of 12 (NIC 12.5, port 15.75 x
// 12/15.75); the tree's first GPUs pass the network's traffic through their ports: 12 / 1.5, so a
// channel of 7. No NVLink: no LL128. log2 of the nodes is 7; more than two nodes: tree at most 10 a
// channel.
TEST(NcclModel, HandComputedOn1024P40) {
  const NcclModel m = model(models::catalog_cluster("jizhi-p40"), 1024);
  EXPECT_EQ(m.graph(ring).channels, 1);
  EXPECT_EQ(m.graph(ring).inter_gbps, 12);
  EXPECT_EQ(m.graph(tree).inter_gbps, 7);
  EXPECT_FALSE(m.time(ring, ll128, Bytes{1e6}));
  EXPECT_FALSE(m.time(tree, ll128, Bytes{1e6}));
  const double steps = 2 * 1023 - 2 * 127;
  EXPECT_NEAR(time_us(m, ring, simple, 5e7),
              1.9 * (8.4 + steps * 5.7 + 254 * 14.0) + 5e4 / (12.0 * 1024 / 2046), 1e-6);
  EXPECT_NEAR(time_us(m, tree, ll, 65536),
              6.8 + 2 * (7 * 1.0 + 7 * 5.0) + 65.536 / (0.92 * 7 / 3.8 / 2 * 0.6), 1e-9);
}

// What real NCCL printed: "Pattern ..., nChannels ..., bw intra/inter" and the tuning table.
TEST(NcclModel, FindsTheGraphsThatNcclLogged) {
  // NVIDIA/nccl issue 1197 (2.19.4, one node of Hoppers on NVSwitch): ring and tree 12 x 30.
  EXPECT_EQ(h200(8, "2.20").graph(tree).channels, 12);
  EXPECT_EQ(h200(8, "2.20").graph(tree).intra_gbps, 30);
  // NVIDIA/nccl issue 1154: 2 nodes of 8 H800 (8 NVLinks) and 8 NDR NICs: all-reduce over trees
  // with Simple has 68.8 GB/s.
  const NcclModel h800 = model(nodes_of(8, "h100", 200e9, 8, 50e9), 16, "2.20");
  EXPECT_NEAR(gbps(h800, tree, simple), 68.8, 0.05);
  // One GPU a node and a 200 Gbit/s NIC: ring 1 x 24/24, tree 1 x 48/24 (its GPU has no
  // neighbours).
  const NcclModel single = model(nodes_of(1, "a100", 300e9, 2, 25e9), 2);
  EXPECT_EQ(single.graph(ring).channels, 1);
  EXPECT_EQ(single.graph(ring).inter_gbps, 24);
  EXPECT_EQ(single.graph(tree).intra_gbps, 48);
  EXPECT_EQ(single.graph(tree).inter_gbps, 24);
  // ... and a 2.5 Gbit/s NIC: ring 0.24/0.24, tree 1.2/0.24.
  const NcclModel slow = model(nodes_of(1, "a100", 300e9, 1, 0.3125e9), 3);
  EXPECT_EQ(slow.graph(ring).inter_gbps, 0.24);
  EXPECT_EQ(slow.graph(tree).intra_gbps, 1.2);
}

// 2.20 differs: a ring over N nodes has 2N network steps, LL a quarter of the bandwidth, trees with
// Simple 28 a step and nothing before.
TEST(NcclModel, TheOlderTablesAreTheirOwn) {
  const NcclModel m = h200(16, "2.20");
  EXPECT_EQ(m.tables().version, "2.20.3-1");
  EXPECT_NEAR(us * m.latency(ring, simple).value(), 8.4 + 26 * 3.4 + 4 * 14.0, 1e-9);
  EXPECT_NEAR(us * m.latency(tree, simple).value(), 2 * (7 * 28.0 + 28.0), 1e-9);
}

// With one rank a node, 2.28 takes the tree's network latency for rings; AMD's row has LL 22.5 on
// two nodes.
TEST(NcclModel, OneRankANodeAndTheProcessorMatter) {
  const models::Cluster cluster = nodes_of(1, "a100", 300e9, 1, 25e9);
  const NcclModel intel = model(cluster, 2);
  EXPECT_NEAR(us * intel.latency(ring, ll).value(), 6.6 + 2 * 5.0, 1e-9);
  EXPECT_NEAR(us * model(cluster, 2, "2.20").latency(ring, ll).value(),
              6.6 + (2 - 4) * 1.0 + 4 * 2.7, 1e-9);
  const models::Cluster fast = models::catalog_cluster("h200-ndr");
  EXPECT_NEAR(gbps(model(fast, 16, "2.28", CpuVendor::amd), ring, ll), 22.5 * 16 / 30, 1e-9);
  EXPECT_EQ(cpu_vendor_from_name("amd"), CpuVendor::amd);
  EXPECT_EQ(error_of([] { return cpu_vendor_from_name("adm"); }),
            "unknown processor 'adm'; did you mean 'amd'?");
}

TEST(NcclModel, TheChoiceIsTheLeast) {
  for (const char* name : {"h200-ndr", "jizhi-p40", "aws-p3-16xlarge", "sony-abci", "goyal-p100"}) {
    const models::Cluster cluster = models::catalog_cluster(name);
    for (const char* version : {"2.20", "2.28"}) {
      for (const int ranks : {2, 7, 8, 9, 16, 24, 100, cluster.ranks()}) {
        const NcclModel m = model(cluster, ranks, version);
        for (double bytes = 1; bytes < 1e10; bytes *= 3) {
          const NcclChoice choice = m.choice(Bytes{bytes}).value();
          EXPECT_EQ(choice.time, m.time(Bytes{bytes}));
          EXPECT_GE(choice.channels, 1);
          EXPECT_LE(choice.channels, m.communicator_channels());
          for (const NcclAlgorithm algorithm : nccl_algorithms) {
            for (const NcclProtocol protocol : nccl_protocols) {
              const auto time = m.time(algorithm, protocol, Bytes{bytes});
              if (time) EXPECT_LE(choice.time, *time);
            }
          }
        }
      }
    }
  }
}

// Rings at all sizes; trees between the powers of two at which their correction changes.
TEST(NcclModel, TimeGrowsWithBytes) {
  for (const int ranks : {8, 16, 4096}) {
    const NcclModel m = h200(ranks);
    for (const NcclProtocol protocol : nccl_protocols) {
      for (double bytes = 64; bytes < 1e10; bytes *= 1.1)
        EXPECT_LT(time_us(m, ring, protocol, bytes), time_us(m, ring, protocol, 1.1 * bytes));
      for (double bytes = 64; bytes < 1e10; bytes *= 2)
        EXPECT_LT(time_us(m, tree, protocol, bytes), time_us(m, tree, protocol, 1.99 * bytes));
    }
  }
  // The exception is NCCL's own: the correction of LL rises from 0.4 to 0.5 at 1 MiB (2^14 x 64 B).
  EXPECT_GT(time_us(h200(16), tree, ll, 1048575), time_us(h200(16), tree, ll, 1048576));
}

TEST(NcclModel, SmallMessagesTakeLlAndLargeOnesDoNot) {
  for (const int ranks : {8, 16, 64, 4096}) {
    EXPECT_EQ(h200(ranks).choice(Bytes{256})->protocol, ll) << ranks;
    EXPECT_NE(h200(ranks).choice(Bytes{1e9})->protocol, ll) << ranks;
  }
  EXPECT_EQ(h200(8).choice(Bytes{1e9})->protocol, simple);
  EXPECT_EQ(model(models::catalog_cluster("jizhi-p40"), 64).choice(Bytes{1e9})->protocol, simple);
}

TEST(NcclModel, TreesWinSmallMessagesOnManyNodes) {
  for (const int ranks : {64, 1024, 8192}) {
    const NcclModel m = h200(ranks);
    EXPECT_EQ(m.choice(Bytes{1024})->algorithm, tree);
    EXPECT_LT(time_us(m, tree, ll, 1024), time_us(m, ring, ll, 1024));
  }
  EXPECT_EQ(h200(64).choice(Bytes{4e9})->algorithm, ring);
}

TEST(NcclModel, OneRankHasNothingToDo) {
  const NcclModel m = h200(1);
  EXPECT_FALSE(m.choice(Bytes{1e6}));
  EXPECT_EQ(m.time(Bytes{1e6}), Seconds{0});
  EXPECT_FALSE(m.time(ring, simple, Bytes{1e6}));
  EXPECT_THROW(h200(0), InputError);
  EXPECT_THROW(h200(1 << 20), InputError);
}

// 1 MiB with LL over 16 ranks: 512 threads x 8 B x 16 ranks = 64 KiB a channel: 16 channels.
TEST(NcclModel, ChannelsGrowWithBytes) {
  const NcclModel m = h200(16);
  EXPECT_EQ(m.channels(ring, ll, Bytes{1}), 1);
  EXPECT_EQ(m.channels(ring, ll, Bytes{3 * 65536.0}), 3);
  EXPECT_EQ(m.channels(ring, ll, Bytes{1 << 20}), 16);
  EXPECT_EQ(m.channels(tree, simple, Bytes{4 * 32768.0}), 4);
  EXPECT_EQ(m.channels(ring, simple, Bytes{1e9}), 16);
}

TEST(NcclModel, ProcessorsAreRefused) {
  models::Cluster cluster = models::catalog_cluster("h200-ndr");
  cluster.device = models::catalog_device("xeon-8160");
  EXPECT_EQ(error_of([&] { return model(cluster, 8); }),
            "NCCL does not run on xeon-8160; choose another strategy, such as fused-ring or "
            "hierarchical, or a cluster of NVIDIA's GPUs");
  EXPECT_EQ(
      error_of([&] { return model(models::catalog_cluster("oci-bm-gpu-mi300x-8"), 8); }),
      "NCCL does not run on mi300x, which has RCCL, and Paceline has no model of that; choose "
      "another strategy, such as fused-ring or hierarchical, or a cluster of NVIDIA's GPUs");
}

TEST(NcclModel, UnknownDevicesArePlacedByTheirRates) {
  models::Cluster cluster = models::catalog_cluster("h200-ndr");
  EXPECT_EQ(model(cluster, 8).compute_capability(), 90);
  EXPECT_TRUE(model(cluster, 8).knows_device());
  cluster.device.compute_capability = 0;
  EXPECT_FALSE(model(cluster, 8).knows_device());
  EXPECT_EQ(model(cluster, 8).compute_capability(), 80);
  cluster.device.tf32.reset();
  EXPECT_EQ(model(cluster, 8).compute_capability(), 70);
}

// Every NVIDIA device of the catalogue has its compute capability.
TEST(NcclTables, KnowTheDevicesOfTheCatalogue) {
  for (const models::CatalogEntry& entry : models::catalog_devices()) {
    const bool nvidia = entry.description.starts_with("NVIDIA");
    const models::Device device = models::catalog_device(entry.name);
    EXPECT_EQ(device.compute_capability > 0, nvidia) << entry.name;
    EXPECT_EQ(sums_by_nccl(device), nvidia) << entry.name;
    EXPECT_TRUE(device.year) << entry.name;
  }
}

TEST(NcclTables, EverySectionNamesItsSource) {
  for (const std::string& version : nccl_versions()) {
    const NcclTables tables = nccl_tables(version);
    EXPECT_TRUE(tables.version.starts_with(version));
    EXPECT_THAT(tables.url, testing::HasSubstr("src/graph/tuning.cc"));
    EXPECT_EQ(tables.sources.size(), tables.pat ? 14u : 13u);
    for (const auto& [section, source] : tables.sources)
      EXPECT_THAT(source, testing::HasSubstr("src/")) << section;
    for (const auto& row : tables.tree_correction) EXPECT_EQ(row.size(), 23u);
  }
  EXPECT_EQ(error_of([] { return nccl_tables("2.2"); }),
            "unknown NCCL version '2.2'; did you mean '2.20'?");
}

TEST(NcclTables, FaultsHavePlaces) {
  EXPECT_EQ(error_of([] { return parse_nccl_tables("version: 1\n", "t.yaml"); }),
            "t.yaml:1:1: the file has no 'url'; add url: ...");
  EXPECT_EQ(error_of([] { return parse_nccl_tables("versoin: 1\n", "t.yaml"); }),
            "t.yaml:1:1: unknown key 'versoin'; did you mean 'version'?");
  const std::string head = "version: 1\nurl: u\nsource: s\nbase_latency: ";
  EXPECT_EQ(error_of([&] {
              return parse_nccl_tables(head + "{source: s, tree: [1, 2], ring: [1, 2, 3]}\n",
                                       "t.yaml");
            }),
            "t.yaml:4:33: tree has 2 numbers; write three");
  EXPECT_EQ(error_of([&] { return parse_nccl_tables(head + "{source: s, tree: 1}\n", "t.yaml"); }),
            "t.yaml:4:33: tree is no list of numbers; write tree: [1.0, 2.0]");
  EXPECT_THROW(
      (void)parse_nccl_tables(head + "{source: s, tree: [1, x, 3], ring: [1, 2, 3]}\n", "t.yaml"),
      InputError);
}

}  // namespace
}  // namespace paceline::simulator

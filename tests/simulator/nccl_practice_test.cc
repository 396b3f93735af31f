#include "simulator/engine/nccl_practice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "models/collective/algorithms.h"
#include "simulator/iteration/all_reduce_time.h"
#include "tests/support/error_of.h"

namespace paceline::simulator {
namespace {

using test::error_of;

constexpr Bytes small{8};
constexpr Bytes large{1LL << 33};

NcclPractice practice(const models::Cluster& cluster, int ranks, Bound bound = Bound::stated) {
  return {nccl_tables("2.28"), cluster, ranks, communication_cost(cluster, nullptr, bound, ranks),
          bound};
}

models::Cluster with_nic(const char* link, int nodes = 2) {
  models::Cluster cluster = models::catalog_cluster("h200-ndr");
  cluster.nodes = nodes;
  cluster.nic = models::catalog_link(link);
  return cluster;
}

TEST(NcclPractice, ASmallMessageTakesTheFactorOfNcclsOwnTime) {
  const models::Cluster cluster = models::catalog_cluster("h200-ndr");
  for (const int ranks : {2, 8, 16, 64}) {
    const NcclModel model(nccl_tables("2.28"), cluster, ranks);
    const auto ratio = [&](Bound bound) {
      return practice(cluster, ranks, bound).time(small) / model.time(small);
    };
    EXPECT_NEAR(ratio(Bound::stated), 1.6, 1e-3) << ranks;
    EXPECT_NEAR(ratio(Bound::fast), 1.0, 1e-3) << ranks;
    EXPECT_NEAR(ratio(Bound::slow), 2.6, 1e-3) << ranks;
  }
}

// 8 H200 in a ring: the bus bandwidth that the catalogue has for NVLink 4.
TEST(NcclPractice, ALargeRingOnANodeHasTheLinksBandwidth) {
  const models::Cluster cluster = models::catalog_cluster("h200-ndr");
  const Seconds time = practice(cluster, 8).time(large, NcclAlgorithm::ring);
  EXPECT_NEAR(bus_bandwidth(8, large, time) / cluster.intra.bandwidth.value, 1, 0.01);
}

// Between nodes, 7 of a ring's 8 hops in a node are over NVLink: 8/7 of 367 GB/s is more than the
// 8 x 47 GB/s of the NICs.
TEST(NcclPractice, ALargeRingBetweenNodesHasTheNicsBandwidth) {
  const models::Cluster cluster = models::catalog_cluster("h200-ndr");
  const Seconds time = practice(cluster, 16).time(large, NcclAlgorithm::ring);
  EXPECT_NEAR(bus_bandwidth(16, large, time) / (8 * cluster.nic.bandwidth.value), 1, 0.01);
}

TEST(NcclPractice, ASlowNodeSlowsAllOfThem) {
  models::Cluster cluster = models::catalog_cluster("h200-ndr");
  const Seconds before = practice(cluster, 16).time(large, NcclAlgorithm::ring);
  cluster.slow_nodes[1] = 0.5;
  EXPECT_NEAR(practice(cluster, 16).time(large, NcclAlgorithm::ring) / before, 2, 0.01);
}

// Two of the steps of a ring among two nodes are between them (NCCL 2.28), and a tree's two.
TEST(NcclPractice, AStepTakesTheLatencyOfEfaAndOfTcp) {
  const models::Cluster infiniband = with_nic("infiniband-ndr");
  const models::Cluster efa = with_nic("efa-400g");
  const models::Cluster tcp = with_nic("tcp-100g");
  const auto network_us = [](const models::Cluster& cluster, NcclProtocol protocol) {
    const NcclTables tables = with_practical_latencies(nccl_tables("2.28"), cluster, Bound::stated);
    return tables.network_latency_us[static_cast<std::size_t>(NcclAlgorithm::ring)]
                                    [static_cast<std::size_t>(protocol)];
  };
  EXPECT_DOUBLE_EQ(network_us(infiniband, NcclProtocol::ll), 1.6 * 2.7);
  EXPECT_DOUBLE_EQ(network_us(efa, NcclProtocol::ll), 36);
  EXPECT_DOUBLE_EQ(network_us(efa, NcclProtocol::simple), 39);
  EXPECT_DOUBLE_EQ(network_us(tcp, NcclProtocol::simple), 40);
}

// NCCL counts the latency that a plugin reports twice with Simple, and therefore chooses Simple at larger
// sizes only. The predicted time of a step does not change.
TEST(NcclPractice, WhatAPluginTellsDecidesTheChoiceAndNotTheTime) {
  const models::Cluster told = with_nic("efa-v2-100g");
  models::Cluster silent = told;
  silent.nic.told_latency = Seconds{0};
  const NcclModel model(nccl_tables("2.28"), told, 16);
  const NcclModel without(nccl_tables("2.28"), silent, 16);
  const auto more_us = [&](NcclProtocol protocol) {
    return 1e6 * (model.latency(NcclAlgorithm::ring, protocol) -
                  without.latency(NcclAlgorithm::ring, protocol))
                     .value();
  };
  EXPECT_NEAR(more_us(NcclProtocol::ll), 2 * 75, 1e-9);
  EXPECT_NEAR(more_us(NcclProtocol::simple), 2 * 2 * 75, 1e-9);
  const auto largest_without_simple = [](const NcclModel& of) {
    double bytes = 8;
    while (of.choice(Bytes{bytes}, NcclAlgorithm::ring)->protocol != NcclProtocol::simple)
      bytes *= 1.05;
    return bytes;
  };
  EXPECT_GT(largest_without_simple(model), largest_without_simple(without));
  for (const NcclProtocol protocol : nccl_protocols)
    EXPECT_EQ(practice(told, 16).time(NcclAlgorithm::ring, protocol, small),
              practice(silent, 16).time(NcclAlgorithm::ring, protocol, small));
}

TEST(NcclPractice, OneRankTakesNoTime) {
  EXPECT_EQ(practice(models::catalog_cluster("h200-ndr"), 1).time(large), Seconds{0});
}

TEST(AllReduceTime, IsTheEnginesForASchedule) {
  const models::Cluster cluster = models::catalog_cluster("h200-ndr");
  AllReduceTimer timer({.cluster = cluster, .ranks = 16});
  const AllReduceTime time = timer.by_name("ring", {}, large);
  CollectiveTimer engine(communication_cost(cluster, nullptr, Bound::stated, 16),
                         EngineKind::automatic);
  const models::PlannedSchedule ring{"ring", {.ranks = 16}, models::ring_all_reduce(16)};
  EXPECT_EQ(time.time.value, engine.time(ring, large));
  EXPECT_LT(time.time.low, time.time.value);
  EXPECT_GT(time.time.high, time.time.value);
  EXPECT_EQ(time.timed_by, "step engine");
}

TEST(AllReduceTime, KnowsNcclByThreeNames) {
  const models::Cluster cluster = models::catalog_cluster("aws-p3-16xlarge");  // no NVSwitches
  AllReduceTimer timer({.cluster = cluster, .ranks = 16, .nccl_version = "2.20"});
  const auto us = [&](const char* name) { return timer.by_name(name, {}, Bytes{1e6}).time.value; };
  EXPECT_EQ(us("nccl"), std::min(us("nccl-ring"), us("nccl-tree")));
  EXPECT_EQ(timer.nccl_model().tables().version, "2.20.3-1");
  EXPECT_THAT(error_of([&] { us("nccl-rin"); }),
              "unknown collective 'nccl-rin'; did you mean 'nccl-ring'?");
}

TEST(AllReduceTime, HasALibrarysCurveWhereTheProfileDoes) {
  const models::Cluster cluster = models::catalog_cluster("h200-ndr");
  AllReduceTimer timer({.cluster = cluster, .ranks = 16});
  EXPECT_FALSE(timer.by_curve(models::Library::nccl, large));
}

TEST(NcclVersions, TheNearestIsByNumber) {
  EXPECT_EQ(nearest_nccl_version("2.5.6"), "2.20");
  EXPECT_EQ(nearest_nccl_version("2.24"), "2.20");
  EXPECT_EQ(nearest_nccl_version("2.25.1"), "2.28");
  EXPECT_EQ(nearest_nccl_version("3.0"), "2.28");
  EXPECT_EQ(nearest_nccl_version("latest"), "2.20");
  EXPECT_THAT(error_of([] { (void)nccl_tables("2.27"); }),
              "unknown NCCL version '2.27'; did you mean '2.28'?");
}

}  // namespace
}  // namespace paceline::simulator

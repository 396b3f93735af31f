// NCCL's own all-gathers, reduce-scatters, broadcasts, reduces and all-to-alls equal counts by hand, move what
// the halves of its all-reduce move, and stay above what links need.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "simulator/cost/nccl_nvls.h"
#include "simulator/cost/nccl_pat.h"
#include "simulator/engine/nccl_practice.h"
#include "simulator/engine/nccl_routes.h"
#include "simulator/iteration/all_reduce_time.h"
#include "tests/support/error_of.h"

namespace paceline::simulator {
namespace {

using models::Collective;
using test::error_of;
using enum NcclAlgorithm;
using enum NcclProtocol;

constexpr double us = 1e6;
constexpr Bytes small{8};
constexpr Bytes large{1LL << 33};

NcclModel model(Collective collective, const models::Cluster& cluster, int ranks,
                const char* version = "2.28") {
  return {nccl_tables(version), cluster, ranks, collective};
}

NcclPractice practice(Collective collective, const models::Cluster& cluster, int ranks) {
  return {nccl_tables("2.28"),
          cluster,
          ranks,
          communication_cost(cluster, nullptr, Bound::stated, ranks),
          Bound::stated,
          {},
          collective};
}

models::Cluster h200(int ranks_per_node = 8) {
  models::Cluster cluster = models::catalog_cluster("h200-ndr");
  cluster.ranks_per_node = ranks_per_node;
  cluster.nics_per_node = ranks_per_node;
  return cluster;
}

double latency_us(const NcclModel& model, NcclProtocol protocol) {
  return us * model.latency(ring, protocol).value();
}

// A ring has p - 1 steps, N - 1 of them over the network; the others take 1 us at least between nodes.
TEST(NcclCollectives, HalfOfAnAllReduceHasHalfOfItsSteps) {
  for (const Collective half : {Collective::all_gather, Collective::reduce_scatter}) {
    EXPECT_NEAR(latency_us(model(half, h200(), 8), ll), 6.6 + 7 * 0.6, 1e-9);
    EXPECT_NEAR(latency_us(model(half, h200(), 8), simple), 8.4 + 7 * 3.4, 1e-9);
    EXPECT_NEAR(latency_us(model(half, h200(), 16), ll), 6.6 + 14 * 1.0 + 2.7, 1e-9);
    EXPECT_NEAR(latency_us(model(half, h200(), 32), ll128), 14 + 28 * 1.9 + 3 * 4.0, 1e-9);
  }
}

TEST(NcclCollectives, BroadcastAndReduceFillTheirRingInOneStep) {
  for (const Collective rooted : {Collective::broadcast, Collective::reduce}) {
    EXPECT_NEAR(latency_us(model(rooted, h200(), 8), ll), 6.6 + 0.6, 1e-9);
    EXPECT_NEAR(latency_us(model(rooted, h200(), 16), simple), 8.4 + 14, 1e-9);
  }
}

TEST(NcclCollectives, RingsHaveTheBusBandwidthOfTheAllReduce) {
  for (const int ranks : {2, 8, 16, 64}) {
    const NcclModel all_reduce = model(Collective::all_reduce, h200(), ranks);
    for (const Collective other : {Collective::all_gather, Collective::reduce_scatter,
                                   Collective::broadcast, Collective::reduce}) {
      const NcclModel of = model(other, h200(), ranks);
      for (const NcclProtocol protocol : nccl_protocols) {
        const auto bus = [&](const NcclModel& at) {
          const BytesPerSecond algorithm = at.bandwidth(ring, protocol);
          return bus_bandwidth(at.collective(), ranks, large, large / algorithm).value();
        };
        EXPECT_NEAR(bus(of) / bus(all_reduce), 1, 1e-12) << ranks << " " << name(other);
      }
      EXPECT_FALSE(of.time(tree, simple, large));
      EXPECT_FALSE(nccl_nvls(of, h200()));
    }
  }
}

// 14 / 3.5 us for each doubling of nodes, and 2.8 us for each rank.
TEST(NcclCollectives, PatIsForOneRankANode) {
  const models::Cluster one = h200(1);
  const auto pat = nccl_pat(model(Collective::all_gather, one, 16));
  ASSERT_TRUE(pat);
  EXPECT_NEAR(us * pat->latency.value(), 8 + 4 * 14 / 3.5 + 16 * 2.8, 1e-9);
  EXPECT_FALSE(nccl_pat(model(Collective::all_gather, one, 16, "2.20")));
  EXPECT_FALSE(nccl_pat(model(Collective::all_reduce, one, 16)));
  EXPECT_FALSE(nccl_pat(model(Collective::all_gather, h200(), 16)));
  // Where a ring's steps over the network add up, PAT is what NCCL chooses.
  const NcclPractice at = practice(Collective::all_gather, one, 256);
  EXPECT_LT(at.time(small), at.time(small, ring));
  EXPECT_GT(at.time(small), Seconds{256 * 2.8e-6});
}

TEST(NcclCollectives, WhatNcclLacksIsRefused) {
  EXPECT_EQ(error_of([] { return model(Collective::gather, h200(), 8); }),
            "NCCL has no gather of its own; time gather of the catalogue");
  EXPECT_EQ(error_of([] { return nccl_collective("nccl-tree", Collective::all_gather); }),
            "NCCL has no all-gather by trees; time nccl, or an all-reduce");
  EXPECT_EQ(error_of([] { return nccl_collective("nccl-ring", Collective::all_to_all); }),
            "NCCL chooses no algorithm for all-to-all; time nccl");
  EXPECT_FALSE(nccl_collective("ring", Collective::all_gather));
}

TEST(NcclCollectives, LargeOnesOnANodeHaveThePortsBandwidth) {
  for (const Collective collective :
       {Collective::all_gather, Collective::reduce_scatter, Collective::broadcast,
        Collective::reduce, Collective::all_to_all}) {
    const Seconds time = practice(collective, h200(), 8).time(large);
    EXPECT_NEAR(bus_bandwidth(collective, 8, large, time) / h200().intra.bandwidth.value, 1, 0.01)
        << name(collective);
  }
}

// A rank sends (p-g)/p of its buffer to other nodes, over a NIC of its own.
TEST(NcclCollectives, AnAllToAllBetweenNodesHasTheNicsBandwidth) {
  const models::Cluster cluster = h200();
  for (const int ranks : {16, 64}) {
    const SecondsPerByte per_byte =
        practice(Collective::all_to_all, cluster, ranks).time(large) / large;
    EXPECT_NEAR(per_byte.value() * cluster.nic.bandwidth.value.value(), (ranks - 8.0) / ranks,
                0.01);
  }
  // PXN: half of the NICs carry twice as much.
  models::Cluster halved = cluster;
  halved.nics_per_node = 4;
  EXPECT_NEAR(practice(Collective::all_to_all, halved, 64).time(large) /
                  practice(Collective::all_to_all, cluster, 64).time(large),
              2, 0.01);
}

TEST(NcclCollectives, MessagesOfAnAllToAllTakeOneStep) {
  const NcclPractice at = practice(Collective::all_to_all, h200(), 8);
  EXPECT_NEAR(us * at.time(small).value(), 1.6 * (6.6 + 0.6), 0.01);
  const Seconds before = at.time(8 * nccl_most_sent_by_ll);
  const Seconds after = at.time(8 * nccl_most_sent_by_ll + Bytes{8});
  EXPECT_NEAR(us * (after - before).value(), 1.6 * (8.4 + 3.4 - 6.6 - 0.6), 0.01);
}

TEST(NcclCollectives, OneRankTakesNoTime) {
  for (const Collective collective : {Collective::all_gather, Collective::all_to_all})
    EXPECT_EQ(practice(collective, h200(), 1).time(large), Seconds{0});
}

models::Cluster any_cluster() {
  models::Cluster cluster = h200(*rc::gen::element(1, 2, 4, 8));
  cluster.nodes = *rc::gen::inRange(2, 17);
  cluster.fabric = {.kind = models::FabricKind::fat_tree,
                    .levels = {{*rc::gen::inRange(1, 5), *rc::gen::inRange(1, 9) * 1.0}}};
  return cluster;
}

// No ring is slower for half of its work, and all grow with bytes and with oversubscription.
RC_GTEST_PROP(NcclCollectives, AreOrderedAndMonotone, ()) {
  models::Cluster cluster = any_cluster();
  const int ranks = cluster.ranks_per_node * *rc::gen::inRange(1, cluster.nodes + 1);
  RC_PRE(ranks > 1);
  const Bytes bytes{std::exp2(*rc::gen::inRange(3, 34))};
  const Seconds all_reduce = practice(Collective::all_reduce, cluster, ranks).time(bytes, ring);
  models::Cluster free = cluster;
  free.fabric.levels[0].oversubscription = 1;
  for (const Collective collective :
       {Collective::all_gather, Collective::reduce_scatter, Collective::broadcast,
        Collective::reduce, Collective::all_to_all}) {
    const NcclPractice at = practice(collective, cluster, ranks);
    if (collective == Collective::all_gather || collective == Collective::reduce_scatter)
      RC_ASSERT(at.time(bytes, ring) <= all_reduce * (1 + 1e-9));
    RC_ASSERT(practice(collective, free, ranks).time(bytes) <= at.time(bytes) * (1 + 1e-9));
    if (collective == Collective::all_to_all)
      RC_ASSERT(at.time(bytes) <= at.time(2 * bytes) * (1 + 1e-9));
  }
}

// The routes of an all-to-all between nodes of one leaf and another.
TEST(NcclRoutes, AnExchangeCrossesOversubscribedLeaves) {
  models::Cluster cluster = h200();
  cluster.nodes = 16;
  cluster.fabric = {.kind = models::FabricKind::fat_tree, .levels = {{4, 8}}};
  const NcclRoutes routes = nccl_routes(communication_cost(cluster, nullptr, Bound::stated, 128),
                                        128, Collective::all_to_all);
  // 32 ranks of a leaf send 96/128 of their buffers through uplinks of half a node's NICs.
  const double uplink = cluster.nics_per_node * cluster.nic.bandwidth.value.value() * 4 / 8;
  EXPECT_NEAR(routes.exchange.value() * uplink, 32 * 96.0 / 128, 1e-9);
  EXPECT_EQ(routes.ring, SecondsPerByte{0});
}

}  // namespace
}  // namespace paceline::simulator

#include "simulator/engine/step_engine.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "simulator/cost/communication_cost.h"
#include "tests/support/schedules.h"

namespace paceline::simulator {
namespace {

using models::NicUse;

// 1 s latency inside, 10 s between nodes; 1 byte/s ports, 0.5 byte/s NIC; 0.25 s to reduce a byte.
CommunicationCost by_hand(int ranks_per_node) {
  return {.ranks_per_node = ranks_per_node,
          .intra = {Seconds{1}, SecondsPerByte{1}},
          .nic = {Seconds{10}, SecondsPerByte{2}},
          .nics_per_node = 1,
          .nic_use = NicUse::striped,
          .gamma = SecondsPerByte{0.25}};
}

// Two nodes of two ranks, 8 bytes. Halving: step 1 inside the node, 4 bytes: 1 + 4, reduce 1 = 6.
// Step 2 between nodes, 2 bytes from each of the two ranks: the NIC carries 4 bytes in 8 s: 10 + 8,
// reduce 0.5 = 18.5. Doubling: 10 + 8, then 1 + 4. Sum 6 + 18.5 + 18 + 5.
TEST(StepEngine, SharesTheNicOfANode) {
  const StepEngine engine(models::halving_doubling_all_reduce(4), by_hand(2));
  EXPECT_DOUBLE_EQ(engine.time(Bytes{8}).value(), 47.5);
}

// Two NICs double the bandwidth when striped; with affinity each rank has its own: 2 bytes in 4 s.
TEST(StepEngine, UsesSeveralNics) {
  for (const NicUse use : {NicUse::striped, NicUse::affinity}) {
    CommunicationCost cost = by_hand(2);
    cost.nics_per_node = 2;
    cost.nic_use = use;
    EXPECT_DOUBLE_EQ(
        StepEngine(models::halving_doubling_all_reduce(4), cost).time(Bytes{8}).value(), 39.5);
  }
}

// A ring over two nodes of two: one message leaves each node in each step; with affinity it has one
// of two NICs, striped it has both. 3 + 3 steps of 2 bytes: 10 + 4 (+ 0.5) against 10 + 2 (+ 0.5).
TEST(StepEngine, ARingWithAffinityHasOneNic) {
  CommunicationCost cost = by_hand(2);
  cost.nics_per_node = 2;
  EXPECT_DOUBLE_EQ(StepEngine(models::ring_all_reduce(4), cost).time(Bytes{8}).value(),
                   3 * 12.5 + 3 * 12);
  cost.nic_use = NicUse::affinity;
  EXPECT_DOUBLE_EQ(StepEngine(models::ring_all_reduce(4), cost).time(Bytes{8}).value(),
                   3 * 14.5 + 3 * 14);
}

TEST(StepEngine, OneRankTakesNoTime) {
  for (const auto& algorithm : models::all_reduce_catalogue()) {
    EXPECT_EQ(StepEngine(algorithm.build({.ranks = 1, .group_size = 0}), by_hand(1))
                  .time(Bytes{1e9})
                  .value(),
              0);
  }
}

TEST(StepEngine, NoBytesTakeTheLatencies) {
  EXPECT_DOUBLE_EQ(StepEngine(models::ring_all_reduce(8), by_hand(1)).time(Bytes{0}).value(),
                   14 * 10);
}

// Rank 3 is late by 100 s; in a ring everybody is, sooner or later.
TEST(StepEngine, WaitsForALateRank) {
  const StepEngine engine(models::ring_all_reduce(4), by_hand(1), Collapse::none);
  const std::vector<Seconds> equal(4, Seconds{0});
  std::vector<Seconds> late = equal;
  late[3] = Seconds{100};
  const Seconds on_time = engine.completion(Bytes{8}, equal).last();
  EXPECT_EQ(on_time, engine.time(Bytes{8}));
  EXPECT_DOUBLE_EQ(engine.completion(Bytes{8}, late).last().value(), on_time.value() + 100);
}

TEST(StepEngine, RefusesWhatWouldFillTheMemory) {
  try {
    const StepEngine engine(models::halving_doubling_all_reduce(1'000'003), by_hand(8));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "1000003 ranks have too little in common to be timed as a few; choose a multiple of the 8 ranks of a node, and for halving-doubling "
                 "a power of two");
  }
}

TEST(StepEngine, GrowsWithEveryParameter) {
  for (const auto& [name, schedule] : test::all_reduces(24)) {
    const auto time = [s = &schedule](const CommunicationCost& cost, double bytes) {
      return StepEngine(*s, cost).time(Bytes{bytes});
    };
    const CommunicationCost base = by_hand(4);
    CommunicationCost slower = base;
    slower.nic.alpha += Seconds{1};
    EXPECT_LE(time(base, 100), time(slower, 100)) << name;
    slower = base;
    slower.nic.beta += SecondsPerByte{1};
    EXPECT_LE(time(base, 100), time(slower, 100)) << name;
    slower = base;
    slower.gamma += SecondsPerByte{1};
    EXPECT_LE(time(base, 100), time(slower, 100)) << name;
    EXPECT_LE(time(base, 100), time(base, 101)) << name;
  }
}

// Every rank must send (p-1)/p of the bucket twice, and a contribution needs log2 p messages to
// reach all.
TEST(StepEngine, IsNeverBelowTheBounds) {
  for (int p = 2; p <= 20; ++p) {
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      const CommunicationCost cost = by_hand(1);
      const double time = StepEngine(schedule, cost).time(Bytes{1000}).value();
      EXPECT_GE(time, 10 * models::ceil_log2(p) - 1e-9) << name;
      EXPECT_GE(time, 2.0 * (p - 1) / p * 1000 * 2 - 1e-9) << name;
    }
  }
}

TEST(CommunicationCost, ReadsFiguresAtEitherEnd) {
  const models::Cluster cluster = models::catalog_cluster("jizhi-p40");
  const CommunicationCost fast = communication_cost(cluster, nullptr, Reading::fast);
  const CommunicationCost slow = communication_cost(cluster, nullptr, Reading::slow);
  EXPECT_EQ(fast.nic.alpha, cluster.nic.latency.low);
  EXPECT_EQ(slow.nic.alpha, cluster.nic.latency.high);
  EXPECT_DOUBLE_EQ(fast.nic.beta.value(), 1 / cluster.nic.bandwidth.high.value());
  EXPECT_LT(fast.gamma, slow.gamma);
  models::Profile profile;
  profile.nic_latency = Figure<Seconds>::exact(Seconds{7e-6}, Provenance::calibrated, "test");
  EXPECT_EQ(communication_cost(cluster, &profile, Reading::stated).nic.alpha.value(), 7e-6);
  EXPECT_EQ(communication_cost(cluster, &profile, Reading::stated).intra.alpha,
            cluster.intra.latency.value);
}

}  // namespace
}  // namespace paceline::simulator

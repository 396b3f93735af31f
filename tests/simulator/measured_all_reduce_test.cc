// What measured all-reduces tell of a cluster: the pace at which its links give exactly what was
// measured, of whatever shape the times are, and predictions from it.
#include "simulator/iteration/measured_all_reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "simulator/iteration/all_reduce_time.h"
#include "tests/support/error_of.h"

namespace paceline::simulator {
namespace {

constexpr Bytes small{64};
constexpr Bytes large{1 << 30};

// alpha 10 us and beta of 10 GB/s, and a bound of 5 GB/s that no pace changes.
Seconds bounded_time(const Pace& pace, const MeasuredAllReduce& of) {
  const double bytes = of.bytes.value();
  return Seconds{10e-6 * pace.latency + std::max(bytes / 10e9 * pace.transfer, bytes / 5e9)};
}

Seconds plain_time(const Pace& pace, const MeasuredAllReduce& of) {
  return Seconds{10e-6 * pace.latency + of.bytes.value() / 10e9 * pace.transfer};
}

TEST(Pace, IsWhatGivesWhatWasMeasured) {
  for (const double latency : {0.1, 0.7, 1.0, 3.2, 20.0}) {
    for (const double transfer : {0.05, 0.9, 1.0, 1.9, 30.0}) {
      const Pace hidden{latency, transfer, true, true};
      const std::vector<MeasuredAllReduce> measured = {
          {2, small, plain_time(hidden, {2, small, {}})},
          {2, large, plain_time(hidden, {2, large, {}})}};
      const Pace found = pace_of(measured, true, plain_time);
      EXPECT_NEAR(found.latency / latency, 1, 1e-3) << latency << " " << transfer;
      EXPECT_NEAR(found.transfer / transfer, 1, 1e-3) << latency << " " << transfer;
      EXPECT_TRUE(found.is_measured);
      EXPECT_TRUE(found.between_nodes);
    }
  }
}

// A crossing between sockets hides the port's rate until the port is the slower one.
TEST(Pace, PassesWhatBoundsTheTime) {
  const std::vector<MeasuredAllReduce> measured = {{2, small, Seconds{15e-6}},
                                                   {2, large, Seconds{large.value() / 3e9}}};
  const Pace found = pace_of(measured, false, bounded_time);
  EXPECT_NEAR(bounded_time(found, measured.back()) / measured.back().time, 1, 1e-5);
  EXPECT_NEAR(found.transfer, 10.0 / 3, 0.01);
}

TEST(Pace, OneAllReduceTellsWhatItConsistsOf) {
  const Pace of_small = pace_of({{2, small, Seconds{20e-6}}}, true, plain_time);
  EXPECT_NEAR(of_small.latency, 2, 1e-3);
  EXPECT_EQ(of_small.transfer, 1);
  const Pace of_large = pace_of({{2, large, Seconds{large.value() / 5e9}}}, true, plain_time);
  EXPECT_EQ(of_large.latency, 1);
  EXPECT_NEAR(of_large.transfer, 2, 1e-3);
}

TEST(Pace, NothingMeasuredLeavesAllAsItIs) {
  const Pace pace = pace_of({}, true, plain_time);
  EXPECT_FALSE(pace.is_measured);
  EXPECT_EQ(pace.latency, 1);
  EXPECT_EQ(pace.transfer, 1);
}

TEST(Telling, IsOfTheNearestRanksOfTheJobsKind) {
  const models::Cluster cluster = models::catalog_cluster("h200-ndr");
  const std::vector<MeasuredAllReduce> measured = {
      {2, small, {}}, {8, small, {}}, {8, large, {}}, {8, Bytes{4096}, {}}, {16, large, {}}};
  const auto at = [&](int ranks) { return telling(measured, cluster, ranks); };
  ASSERT_EQ(at(8).size(), 2U);
  EXPECT_EQ(at(8).front().bytes, small);
  EXPECT_EQ(at(8).back().bytes, large);
  ASSERT_EQ(at(2).size(), 1U);
  ASSERT_EQ(at(32).size(), 1U);
  EXPECT_EQ(at(32).front().ranks, 16);
  const std::vector<MeasuredAllReduce> inside = {{8, small, {}}, {8, large, {}}};
  EXPECT_EQ(telling(inside, cluster, 32).size(), 2U);
  EXPECT_TRUE(telling({{16, large, {}}}, cluster, 8).empty());
}

AllReduceTime timed(const char* algorithm, int ranks, Bytes bytes,
                    std::vector<MeasuredAllReduce> measured) {
  const models::Cluster cluster = models::catalog_cluster("h200-ndr");
  AllReduceTimer timer({.cluster = cluster, .ranks = ranks, .measured = std::move(measured)});
  return timer.by_name(algorithm, {}, bytes);
}

TEST(MeasuredAllReduces, ArePredictedAsTheyWereMeasured) {
  for (const char* algorithm : {"ring", "halving-doubling", "nccl-ring", "nccl"}) {
    for (const int ranks : {8, 16}) {
      const Seconds short_time = 1.7 * timed(algorithm, ranks, small, {}).time.value;
      const Seconds long_time = 1.2 * timed(algorithm, ranks, large, {}).time.value;
      const std::vector<MeasuredAllReduce> measured = {{ranks, small, short_time},
                                                       {ranks, large, long_time}};
      EXPECT_NEAR(timed(algorithm, ranks, small, measured).time.value / short_time, 1, 1e-5)
          << algorithm;
      EXPECT_NEAR(timed(algorithm, ranks, large, measured).time.value / long_time, 1, 1e-5)
          << algorithm;
    }
  }
}

// 4 ranks a node, 10 GB/s for each; two NICs of 1 GB/s. At twice that, 1 GB through each rank's links
// inside a node, and through a node's NICs between nodes.
TEST(MeasuredAllReduces, TakeAtLeastWhatTheLinksAllow) {
  CommunicationCost cost{.ranks_per_node = 4,
                         .intra = {Seconds{1e-3}, SecondsPerByte{1e-10}},
                         .nic = {Seconds{1e-3}, SecondsPerByte{1e-9}},
                         .nics_per_node = 2};
  const auto least = [&](int ranks) {
    return least_time({ranks, Bytes{1e9}, Seconds{1}}, cost).value();
  };
  EXPECT_DOUBLE_EQ(least(4), 0.05);
  EXPECT_DOUBLE_EQ(least(5), 0.25);
  EXPECT_DOUBLE_EQ(least(400), 0.25);
  cost.intra_kind = models::IntraKind::ring;
  EXPECT_DOUBLE_EQ(least(4), 0.025);
  cost.intra_kind = models::IntraKind::all_to_all;
  EXPECT_DOUBLE_EQ(least(4), 0.05 / 3);
  EXPECT_DOUBLE_EQ(least(2), 0.05);
}

// No algorithm of ours is faster, at the figures' fast ends.
TEST(MeasuredAllReduces, AtTheirFastestArePossible) {
  const models::Cluster cluster = models::catalog_cluster("h200-ndr");
  for (const char* algorithm : {"ring", "halving-doubling", "direct-exchange",
                                "hierarchical-scatter", "nccl", "nccl-tree"}) {
    for (const int ranks : {2, 8, 16, 64}) {
      const CommunicationCost cost = communication_cost(cluster, nullptr, Bound::fast, ranks);
      for (const Bytes bytes : {small, large}) {
        EXPECT_GT(timed(algorithm, ranks, bytes, {}).time.low,
                  least_time({ranks, bytes, Seconds{1}}, cost))
            << algorithm << " " << ranks;
      }
    }
  }
}

// What was measured inside a node does not change the rate of the NICs.
TEST(MeasuredAllReduces, OfANodeLeaveTheNetworkAsItIs) {
  const Seconds before = timed("nccl-ring", 32, large, {}).time.value;
  const Seconds node = timed("nccl-ring", 8, large, {}).time.value;
  const Seconds after = timed("nccl-ring", 32, large, {{8, large, 0.8 * node}}).time.value;
  EXPECT_NEAR(after / before, 1, 1e-9);
}

TEST(MeasuredAllReduces, NarrowTheInterval) {
  const auto reach = [](const AllReduceTime& time) { return time.time.high / time.time.low; };
  const Seconds stated = timed("nccl-ring", 16, large, {}).time.value;
  EXPECT_LT(reach(timed("nccl-ring", 16, large, {{16, large, stated}})),
            reach(timed("nccl-ring", 16, large, {})));
}

TEST(MeasuredAllReduces, FitTheCluster) {
  EXPECT_NE(test::error_of([] {
              (void)timed("ring", 16, large, {{100000, large, Seconds{1}}});
            }),
            "");
}

// All figures stated: no figure is uncertain, and the interval is of what none explains.
TEST(AllReduceSpread, IsTheIntervalWhereNoFigureHasOne) {
  models::Cluster cluster = models::catalog_cluster("h200-ndr");
  const auto certain = [](auto& figure) { figure.low = figure.high = figure.value; };
  certain(cluster.intra.latency);
  certain(cluster.intra.bandwidth);
  certain(cluster.nic.latency);
  certain(cluster.nic.bandwidth);
  AllReduceTimer timer({.cluster = cluster, .ranks = 16});
  const Figure<Seconds> time = timer.by_name("ring", {}, Bytes{1e13}).time;
  constexpr double reach_of_90_percent = 1.6449;
  const double spread = std::log(time.high / time.value) / reach_of_90_percent;
  EXPECT_NEAR(spread, all_reduce_spread({}).transfer, 1e-3);
  EXPECT_NEAR(std::log(time.value / time.low) / reach_of_90_percent, spread, 1e-3);
}

// A measured all-reduce says less about a job with many more or many fewer ranks.
TEST(AllReduceSpread, GrowsWithRanksBetweenTheJobAndWhatWasMeasured) {
  const models::Cluster cluster = models::catalog_cluster("h200-ndr");
  const auto reach = [&](int measured, Bytes bytes) {
    AllReduceTimer timer({.cluster = cluster,
                          .ranks = 64,
                          .measured = {{measured, Bytes{1 << 10}, Seconds{60e-6}},
                                       {measured, Bytes{1 << 28}, Seconds{3e-3}}}});
    const Figure<Seconds> time = timer.by_name("ring", {}, bytes).time;
    return time.high / time.low;
  };
  for (const Bytes bytes : {Bytes{1 << 12}, Bytes{1 << 28}}) {
    double before = 0;
    for (const int measured : {64, 32, 16}) {
      const double now = reach(measured, bytes);
      EXPECT_GT(now, before);
      before = now;
    }
    EXPECT_NEAR(std::log(reach(128, bytes)) / std::log(reach(32, bytes)), 1, 0.01);
  }
}

}  // namespace
}  // namespace paceline::simulator

#include "simulator/cost/losses.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace paceline::simulator {
namespace {

// David and Nagaraja, Order Statistics: 1 / sqrt(pi), 3 / (2 sqrt(pi)), and tables.
TEST(ExpectedMaximum, IsThatOfTables) {
  EXPECT_NEAR(expected_maximum(1), 0, 1e-9);
  EXPECT_NEAR(expected_maximum(2), std::numbers::inv_sqrtpi, 1e-6);
  EXPECT_NEAR(expected_maximum(3), 1.5 * std::numbers::inv_sqrtpi, 1e-6);
  EXPECT_NEAR(expected_maximum(8), 1.42360, 1e-5);
  EXPECT_NEAR(expected_maximum(100), 2.50759, 1e-5);
  EXPECT_NEAR(expected_maximum(1024), 3.2489, 1e-3);
}

TEST(ExpectedMaximum, GrowsWithTheNumberOfRanks) {
  for (int n = 1; n < 1 << 24; n *= 2) EXPECT_GT(expected_maximum(2 * n), expected_maximum(n)) << n;
}

TEST(WaitingFactor, IsOneForARankAlone) {
  const Losses losses{.rank_spread = 0.1, .jitter = 0.1, .crowding = 2};
  EXPECT_DOUBLE_EQ(waiting_factor(losses, {1, 8}), 1);
}

TEST(WaitingFactor, HasCrowdingOnlyWhereANodeHasSeveralRanks) {
  const Losses losses{.rank_spread = 0.03, .jitter = 0.04, .crowding = 1.5};
  EXPECT_NEAR(waiting_factor(losses, {8, 1}), 1 + 0.05 * 1.42360, 1e-6);
  EXPECT_NEAR(waiting_factor(losses, {8, 8}), 1.5 * (1 + 0.05 * 1.42360), 1e-6);
  // Three busy ranks do not crowd a node of eight, and four do.
  EXPECT_NEAR(waiting_factor(losses, {3, 8}), 1 + 0.05 * expected_maximum(3), 1e-6);
  EXPECT_NEAR(waiting_factor(losses, {4, 8}), 1.5 * (1 + 0.05 * expected_maximum(4)), 1e-6);
}

// The table of shared/reference/priors.md, section 1, at a memory-bound share of a half.
TEST(BesideCollective, IsTheStructuralEstimate) {
  const Losses losses{.slowdown = 1, .memory_bound = 0.5};
  const auto of = [&](int multiprocessors, double memory, double bus) {
    return beside_collective(losses, multiprocessors, BytesPerSecond{memory}, BytesPerSecond{bus});
  };
  EXPECT_NEAR(of(80, 900e9, 12e9), 1.03, 0.005);    // V100 behind one NIC
  EXPECT_NEAR(of(80, 900e9, 130e9), 1.28, 0.01);    // DGX-1
  EXPECT_NEAR(of(108, 1555e9, 230e9), 1.29, 0.01);  // DGX A100
}

TEST(BesideCollective, IsOneWithoutACollectiveOrWithoutMultiprocessors) {
  const Losses losses{.slowdown = 1, .memory_bound = 0.5};
  EXPECT_DOUBLE_EQ(beside_collective(losses, 80, BytesPerSecond{1e12}, BytesPerSecond{0}), 1);
  EXPECT_DOUBLE_EQ(beside_collective(losses, 0, BytesPerSecond{1e12}, BytesPerSecond{1e9}), 1);
}

TEST(BesideCollective, StaysFiniteHoweverFastTheLink) {
  const Losses losses{.slowdown = 1, .memory_bound = 1};
  EXPECT_LE(beside_collective(losses, 10, BytesPerSecond{1e9}, BytesPerSecond{1e15}), 10 + 1e-9);
}

TEST(Slowed, StretchesEverythingAndTheRestBesideACollective) {
  ComputeTimes times;
  times.layers = {{Seconds{1}, Seconds{2}}};
  times.update = Seconds{4};
  const ComputeTimes slow = slowed(times, 1.5, 2);
  EXPECT_EQ(slow.layers[0].forward, Seconds{1.5});
  EXPECT_EQ(slow.update, Seconds{6});
  ASSERT_EQ(slow.beside_traffic.size(), 1U);
  EXPECT_EQ(slow.beside_traffic[0].backward, Seconds{6});
}

TEST(Slowed, KeepsTimesBesideTrafficThatWereCalibrated) {
  ComputeTimes times;
  times.layers = {{Seconds{1}, Seconds{2}}};
  times.beside_traffic = {{Seconds{3}, Seconds{3}}};
  EXPECT_EQ(slowed(times, 1, 2).beside_traffic[0].forward, Seconds{3});
}

// The calibrated figure takes the place of the estimate, and holds beside kernels alone.
TEST(Slowed, TakesWhatWasCalibratedForAllLayersTogether) {
  ComputeTimes times;
  times.layers = {{Seconds{1}, Seconds{2}}};
  times.beside_collectives = Figure<double>::exact(3, Provenance::calibrated, "a test");
  const ComputeTimes slow = slowed(times, 1.5, 1.1);
  EXPECT_TRUE(slow.beside_kernels_only);
  ASSERT_EQ(slow.beside_traffic.size(), 1U);
  EXPECT_EQ(slow.beside_traffic[0].backward, Seconds{9});
  times.beside_collectives->value = 1;
  EXPECT_TRUE(slowed(times, 1, 1.1).beside_traffic.empty());
}

// Beside a collective of half the effect, half of what was calibrated is lost; beside one of more, all.
TEST(BesideAnother, TakesTheShareOfTheEstimateAndNoMoreThanWasCalibrated) {
  const Figure<double> calibrated{3, 2, 4, Provenance::calibrated, "a test"};
  const Figure<double> slower = beside_another(calibrated, 1.4, 1.2);
  EXPECT_DOUBLE_EQ(slower.value, 2);
  EXPECT_DOUBLE_EQ(slower.low, 1.5);
  EXPECT_DOUBLE_EQ(slower.high, 2.5);
  EXPECT_EQ(beside_another(calibrated, 1.4, 1.4).value, 3);
  EXPECT_EQ(beside_another(calibrated, 1.4, 1.9).value, 3);
  EXPECT_EQ(beside_another(calibrated, 1, 1).value, 3);
  EXPECT_EQ(beside_another(calibrated, 1.4, 1).value, 1);
}

TEST(BusBandwidth, IsThatOfTheNarrowestPartOfARing) {
  CommunicationCost cost;
  cost.ranks_per_node = 4;
  cost.nics_per_node = 2;
  cost.intra.beta = 1.0 / BytesPerSecond{100e9};
  cost.nic.beta = 1.0 / BytesPerSecond{10e9};
  EXPECT_EQ(bus_bandwidth(cost, 1), BytesPerSecond{0});
  EXPECT_NEAR(bus_bandwidth(cost, 4).value(), 100e9, 1);
  EXPECT_NEAR(bus_bandwidth(cost, 8).value(), 20e9, 1);
}

}  // namespace
}  // namespace paceline::simulator

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
TEST(Interference, IsTheStructuralEstimate) {
  const Losses losses{.slowdown = 1, .memory_bound = 0.5};
  const auto of = [&](int multiprocessors, double memory, double bus) {
    return estimated_interference(losses, multiprocessors, BytesPerSecond{memory})
        .beside(BytesPerSecond{bus});
  };
  EXPECT_NEAR(of(80, 900e9, 12e9), 1.03, 0.005);    // V100 behind one NIC
  EXPECT_NEAR(of(80, 900e9, 130e9), 1.28, 0.01);    // DGX-1
  EXPECT_NEAR(of(108, 1555e9, 230e9), 1.29, 0.01);  // DGX A100
}

TEST(Interference, IsOneWithoutACollectiveOrWithoutMultiprocessors) {
  const Losses losses{.slowdown = 1, .memory_bound = 0.5};
  const BytesPerSecond memory{1e12};
  EXPECT_EQ(estimated_interference(losses, 80, memory).beside(BytesPerSecond{0}), 1);
  EXPECT_EQ(estimated_interference(losses, 0, memory).beside(BytesPerSecond{1e9}), 1);
  EXPECT_EQ(Interference{}.lost(Bytes{1e9}, Seconds{1}), Seconds{0});
}

TEST(Interference, StaysFiniteHoweverFastTheLink) {
  const Losses losses{.slowdown = 1, .memory_bound = 1};
  const Interference interference = estimated_interference(losses, 10, BytesPerSecond{1e9});
  EXPECT_LE(interference.beside(BytesPerSecond{1e15}), 10 + 1e-9);
}

// Two blocks of 80 for however long it takes, or what its bytes take, whichever is more, and 0.9 of its
// time at most. A collective that ends sooner never takes more.
TEST(Interference, FollowsTheBytesThatMoveAndNotTheirRate) {
  const Losses losses{.slowdown = 1, .memory_bound = 0.5};
  const Interference interference = estimated_interference(losses, 80, BytesPerSecond{900e9});
  const double of_a_byte = 0.5 * 2.5 / (1 - 0.36 * 0.5) / 900e9;
  const auto lost = [&](double seconds) {
    return interference.lost(Bytes{1e9}, Seconds{seconds}).value();
  };
  EXPECT_NEAR(lost(0.001), 0.0009, 1e-15);
  for (const double seconds : {0.01, 0.02, 0.04})
    EXPECT_NEAR(lost(seconds), of_a_byte * 1e9, 1e-15);
  EXPECT_NEAR(lost(1), 2.0 / 80, 1e-15);
  for (double seconds = 1e-4; seconds < 10; seconds *= 1.1)
    EXPECT_LE(lost(seconds), lost(1.1 * seconds));
}

constexpr Interference half{.least = 0.5, .a_byte = SecondsPerByte{0}, .most = 0.5};

TEST(Slowed, StretchesEverythingAndTheRestBesideACollective) {
  ComputeTimes times;
  times.layers = {{Seconds{1}, Seconds{2}}};
  times.update = Seconds{4};
  const ComputeTimes slow = slowed(times, 1.5, half, 8);
  EXPECT_EQ(slow.layers[0].forward, Seconds{1.5});
  EXPECT_EQ(slow.update, Seconds{6});
  ASSERT_EQ(slow.beside_traffic.size(), 1U);
  EXPECT_EQ(slow.beside_traffic[0].backward, Seconds{6});
}

TEST(Slowed, KeepsTimesBesideTrafficThatWereCalibrated) {
  ComputeTimes times;
  times.layers = {{Seconds{1}, Seconds{2}}};
  times.beside_traffic = {{Seconds{3}, Seconds{3}}};
  EXPECT_EQ(slowed(times, 1, half, 8).beside_traffic[0].forward, Seconds{3});
}

// Full load is what a collective takes at most, and each takes its bytes' share of that: 14/8 n for
// 8 ranks.
TEST(Slowed, LoadsTheDeviceByTheBytesThatMove) {
  ComputeTimes times;
  times.layers = {{Seconds{1}, Seconds{2}}};
  const Interference interference{.least = 0.1, .a_byte = SecondsPerByte{1e-9}, .most = 0.8};
  const ComputeTimes slow = slowed(times, 1, interference, 8);
  EXPECT_TRUE(slow.beside_kernels_only);
  ASSERT_EQ(slow.beside_traffic.size(), 1U);
  EXPECT_NEAR(slow.beside_traffic[0].backward.value(), 10, 1e-12);
  for (const double seconds : {0.1, 1.0, 5.0, 100.0}) {
    const Bytes bytes{1e9};
    EXPECT_NEAR(0.8 * slow.load.full(bytes, Seconds{seconds}).value(),
                interference.lost(bus_bytes(bytes, 8), Seconds{seconds}).value(), 1e-12);
  }
}

// What was calibrated is reproduced beside the bandwidth that it was calibrated at. Beside half of that,
// half of the speed is lost.
TEST(CalibratedInterference, IsAsCalibratedAtThatBandwidthAndFollowsTheEstimateElsewhere) {
  const Interference estimate{.least = 0.01, .a_byte = SecondsPerByte{1e-12}, .most = 0.9};
  const BytesPerSecond bus{100e9};
  for (const double beside : {1.0, 1.3, 3.0, 40.0}) {
    const Interference calibrated = calibrated_interference(estimate, beside, bus);
    EXPECT_NEAR(calibrated.beside(bus), beside, 1e-9 * beside);
    EXPECT_NEAR(calibrated.share(bus / 2), (1 - 1 / beside) / 2, 1e-12);
    EXPECT_NEAR(calibrated.share(bus / 1e6), (1 - 1 / beside) / 10, 1e-12);
  }
  const Interference same = calibrated_interference({}, 3, bus);
  EXPECT_NEAR(same.beside(bus / 2), 3, 1e-12);
  EXPECT_NEAR(same.lost(Bytes{1}, Seconds{3}).value(), 2, 1e-12);
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

#include "simulator/planner/cycles.h"

#include <gtest/gtest.h>

#include "simulator/cost/dispatch_cost.h"
#include "simulator/iteration/dag.h"
#include "simulator/iteration/steady_state.h"
#include "simulator/planner/recurrence.h"
#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

using namespace paceline::literals;
using models::Negotiation;

std::vector<models::Gradient> gradients_of(const std::vector<std::int64_t>& elements) {
  return test::chain_network({elements.rbegin(), elements.rend()}).gradients;
}

std::vector<models::Bucket> buckets(const std::vector<std::int64_t>& elements,
                                    const std::vector<Seconds>& times, Seconds cycle, Bytes theta,
                                    Seconds all_reduce,
                                    Negotiation negotiation = Negotiation::none) {
  const auto gradients = gradients_of(elements);
  return buckets_of_cycles(gradients, times, {.cycle = cycle, .negotiation = negotiation}, theta,
                           4_B, [&](const models::Bucket&) { return all_reduce; });
}

// Nothing travels when the last gradient is there: it waits half a cycle.
TEST(Cycles, TheLastTensorWaitsHalfACycleInTheMean) {
  const auto made = buckets({10}, {20_ms}, 5_ms, 1_MiB, 1_ms);
  ASSERT_EQ(made.size(), 1u);
  EXPECT_NEAR(made[0].wait.value(), 2.5e-3, 1e-12);
}

// Ticks are at 12.5 ms and each 5 ms before and after. The first takes what came at 8 and 9 ms, and
// does not wait for the buffer to fill.
TEST(Cycles, ACycleTakesWhatIsThere) {
  const auto made = buckets({1, 2, 3}, {8_ms, 9_ms, 20_ms}, 5_ms, 1_MiB, 1_us);
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0].gradient_count, 2);
  EXPECT_EQ(made[0].elements, 3);
  EXPECT_NEAR(made[0].wait.value(), 3.5e-3, 1e-9);
  EXPECT_EQ(made[1].first_gradient, 2);
  EXPECT_NEAR(made[1].wait.value(), 2.5e-3, 1e-9);
}

// What comes while the stream is busy is taken together, at once when it is free.
TEST(Cycles, ACycleThatFindsTheStreamBusyWaitsForIt) {
  const auto made = buckets({1, 1, 1, 1}, {0_ms, 30_ms, 60_ms, 90_ms}, 5_ms, 1_MiB, 100_ms);
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0].gradient_count, 1);
  EXPECT_EQ(made[1].gradient_count, 3);
}

// 4 bytes each: the tensor that would take a bucket beyond theta opens the next; a larger one is by
// itself. All are of one cycle.
TEST(Cycles, BucketsHoldAtMostTheta) {
  const auto made = buckets({4, 5, 2, 30, 1}, std::vector<Seconds>(5, 10_ms), 5_ms, 40_B, 1_ms);
  std::vector<std::int64_t> sizes;
  for (const auto& bucket : made) sizes.push_back(bucket.elements);
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{9, 2, 30, 1}));
}

TEST(Cycles, HoldEveryGradientOnce) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<std::int64_t> elements(1 + random() % 30);
    std::vector<Seconds> times;
    Seconds now = 1_ms;
    for (auto& count : elements) {
      count = 1 + static_cast<std::int64_t>(random() % 1000);
      times.push_back(now += static_cast<double>(random() % 20) * 1_ms);
    }
    const Seconds takes = static_cast<double>(random() % 30) * 1_ms;
    const bool counts_from_end = random() % 2 == 0;
    const auto made = buckets(elements, times, 5_ms, Bytes(static_cast<double>(random() % 4000)),
                              takes, counts_from_end ? Negotiation::messages : Negotiation::bits);
    int next = 0;
    for (const models::Bucket& bucket : made) {
      EXPECT_EQ(bucket.first_gradient, next);
      next += bucket.gradient_count;
      EXPECT_GE(bucket.wait, 0_s);
      // Counted from the end of the work, a cycle lasts longer by that.
      if (!counts_from_end) {
        EXPECT_LE(bucket.wait.value(), 5e-3 + 1e-9);
      }
    }
    EXPECT_EQ(next, static_cast<int>(elements.size()));
  }
}

// A chain of two layers, 10 ms each way; one gradient each. Backward ends at 40 ms, the last gradient
// waits 2.5 ms, agrees for 1 ms, and takes 4 ms: 47.5 ms.
TEST(Cycles, WaitAndNegotiationAreExposedByHand) {
  const models::NetworkWork network = test::chain_network({10, 10});
  ComputeTimes compute;
  compute.layers.assign(2, {10_ms, 10_ms});
  models::Plan plan =
      models::make_plan(models::strategy("horovod"), network.gradients, 2, models::WireType::fp32,
                        {.fusion = 1_MiB, .dispatch = {.cycle = 5_ms}});
  plan.buckets =
      buckets_of_cycles(network.gradients, gradient_times(network, compute), plan.dispatch, 1_MiB,
                        4_B, [](const models::Bucket&) { return 5_ms; });
  ASSERT_EQ(plan.buckets.size(), 2u);
  std::vector<BucketTimes> times;
  for (const models::Bucket& bucket : plan.buckets) {
    BucketTimes of_bucket;
    of_bucket.all_reduce = 4_ms;
    of_bucket.wait = bucket.wait;
    of_bucket.negotiation = 1_ms;
    times.push_back(of_bucket);
  }
  const IterationDag dag(network, plan, compute, times, {});
  const SteadyIteration steady = steady_state(dag);
  EXPECT_NEAR(steady.period.value(), 47.5e-3, 1e-9);
  // Waiting is not communication.
  EXPECT_NEAR(time_spent(dag, steady).communication.value(), 10e-3, 1e-9);
}

// With room for 8 bytes, a third bucket of 4 is handed over when the first is done.
TEST(CreditWindow, LeavesRoomByHand) {
  const std::vector<Bytes> sizes(4, 4_B);
  CreditWindow window(sizes, 8_B);
  EXPECT_EQ(window.room_after(0), -1);
  EXPECT_EQ(window.room_after(1), -1);
  EXPECT_EQ(window.room_after(2), 0);
  EXPECT_EQ(window.room_after(3), 1);
  CreditWindow one_at_a_time(sizes, 0_B);
  EXPECT_EQ(one_at_a_time.room_after(3), 2);
  CreditWindow unlimited(sizes, std::nullopt);
  EXPECT_EQ(unlimited.room_after(3), -1);
}

// Bucket 3 is urgent, and comes when bucket 0 travels. What was handed over before it goes first.
TEST(CreditWindow, WhatIsHandedOverGoesBeforeWhatIsUrgent) {
  const std::vector<Seconds> ready = {0_s, 0_s, 0_s, 1_s};
  const std::vector<Seconds> durations(4, 2_s);
  const std::vector<int> priorities = {3, 2, 1, 0};
  const std::vector<Seconds> waits(4, 0_s);
  const std::vector<Bytes> sizes(4, 4_B);
  EXPECT_EQ(priority_order(ready, durations, priorities), (std::vector<int>{2, 3, 1, 0}));
  EXPECT_EQ(priority_order(ready, durations, priorities, {waits, sizes, 8_B}),
            (std::vector<int>{2, 1, 3, 0}));
  EXPECT_EQ(priority_order(ready, durations, priorities, {waits, sizes, 16_B}),
            (std::vector<int>{2, 1, 0, 3}));
}

// Three parts of a gradient, each 2 s on the stream and 3 s from being handed over to travelling. One
// at a time each pays both; with a credit for two, waits run beside the part before.
TEST(CreditWindow, CreditHidesWaitsByHand) {
  const models::NetworkWork network = test::chain_network({30});
  ComputeTimes compute;
  compute.layers.assign(1, {1_s, 1_s});
  const auto period = [&](std::optional<Bytes> credit) {
    models::Plan plan = models::make_plan(models::strategy("byte-scheduler"), network.gradients, 2,
                                          models::WireType::fp32,
                                          {.partition = 40_B, .dispatch = {.credit = credit}});
    EXPECT_EQ(plan.buckets.size(), 3u);
    plan.overlap = models::Overlap::wait_free;
    BucketTimes times;
    times.all_reduce = 2_s;
    times.wait = 3_s;
    const IterationDag dag(network, plan, compute, std::vector<BucketTimes>(3, times), {});
    return steady_state(dag).period.value();
  };
  EXPECT_DOUBLE_EQ(period(0_B), 2 + 3 * 5);
  // Parts 0 and 1 at 2, both there at 5: 5-7, 7-9. Part 2 at 7, there at 10: 10-12.
  EXPECT_DOUBLE_EQ(period(80_B), 12);
  EXPECT_DOUBLE_EQ(period(std::nullopt), 2 + 3 + 3 * 2);
}

CommunicationCost two_links() {
  return {.ranks_per_node = 4,
          .intra = {1_us, SecondsPerByte{1e-10}},
          .nic = {10_us, SecondsPerByte{1e-10}}};
}

// 16 ranks on 4 nodes: 2 levels inside, 2 between: 2 (2 x 1 + 2 x 10) = 44 us for a tree.
TEST(Negotiation, ByHand) {
  const CommunicationCost cost = two_links();
  const auto us = [&](Negotiation negotiation, int ranks, int gradients, Bound bound) {
    return negotiation_time(negotiation, ranks, gradients, cost, bound).value() * 1e6;
  };
  EXPECT_NEAR(us(Negotiation::bits, 16, 5, Bound::stated), 66, 1e-9);
  EXPECT_NEAR(us(Negotiation::bits, 16, 5, Bound::fast), 44, 1e-9);
  EXPECT_NEAR(us(Negotiation::gather, 16, 5, Bound::stated), 88 + 80, 1e-9);
  EXPECT_NEAR(us(Negotiation::messages, 16, 5, Bound::stated), 32, 1e-9);
  EXPECT_NEAR(us(Negotiation::messages, 16, 5, Bound::slow), 160, 1e-9);
  EXPECT_EQ(us(Negotiation::none, 16, 5, Bound::stated), 0);
  for (const Negotiation kind : {Negotiation::messages, Negotiation::gather, Negotiation::bits})
    EXPECT_EQ(us(kind, 1, 5, Bound::stated), 0);
}

// Three parts of layer 0, one of layer 1: 0.26 ms each, in the forward pass of their layer.
TEST(Tasks, OfByteSchedulerStopTheForwardPassByHand) {
  const models::NetworkWork network = test::chain_network({30, 10});
  ComputeTimes compute;
  compute.layers.assign(2, {1_s, 2_s});
  const auto forward_ms = [&](const char* strategy, int ranks, Bound bound) {
    const models::Plan plan = models::make_plan(models::strategy(strategy), network.gradients,
                                                ranks, models::WireType::fp32, {.partition = 40_B});
    const ComputeTimes with = with_tasks(compute, network, plan, bound);
    EXPECT_EQ(with.layers[0].backward, compute.layers[0].backward);
    return std::pair((with.layers[0].forward - 1_s).value() * 1e3,
                     (with.layers[1].forward - 1_s).value() * 1e3);
  };
  const auto stated = forward_ms("byte-scheduler", 2, Bound::stated);
  EXPECT_NEAR(stated.first, 3 * 0.26, 1e-9);
  EXPECT_NEAR(stated.second, 0.26, 1e-9);
  EXPECT_NEAR(forward_ms("byte-scheduler", 2, Bound::slow).first, 3 * 0.8, 1e-9);
  EXPECT_EQ(forward_ms("byte-scheduler", 1, Bound::stated).first, 0);
  EXPECT_EQ(forward_ms("p3", 2, Bound::stated).first, 0);
}

// 60 MB: 12 ms each way; a core adds three quarters of it at 3 GB/s.
TEST(HostWay, ByHand) {
  const HostWay way = host_way(60e6 * 1_B, 4, Bound::stated);
  EXPECT_NEAR(way.copy.value(), 12e-3, 1e-12);
  EXPECT_NEAR(way.sum.value(), 15e-3, 1e-12);
  EXPECT_EQ(way.messages, 3);
  EXPECT_EQ(host_way(60e6 * 1_B, 4, Bound::slow).messages, 10);
  EXPECT_LT(host_way(60e6 * 1_B, 4, Bound::fast).sum, way.sum);
  EXPECT_GT(host_way(60e6 * 1_B, 4, Bound::slow).copy, way.copy);
}

}  // namespace
}  // namespace paceline::simulator

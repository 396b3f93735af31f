#include "simulator/iteration/bucket_travel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

using models::Overlap;

// Two layers; forward 1 s and 2 s, backward 4 s and 3 s, update 0.5 s; two buckets of 5 s.
//   compute  F0 0-1, F1 1-3, B1 3-6, B0 6-10, idle 10-16, update 16-16.5
//   wait-free: bucket 0 (layer 1) 6-11, bucket 1 (layer 0) 11-16
TEST(PlanTravel, OfTwoLayersByHand) {
  const models::NetworkWork network = test::chain_network({10, 10});
  const ComputeTimes compute{.layers = {{Seconds{1}, Seconds{4}}, {Seconds{2}, Seconds{3}}},
                             .update = Seconds{0.5},
                             .provenance = {},
                             .source = {}};
  const std::vector<BucketTimes> buckets(2, BucketTimes{{}, {}, Seconds{5}, {}});
  const models::Plan plan =
      models::make_plan(models::strategy("ring"), network.gradients, 2, models::WireType::fp32, {});
  const IterationDag dag(network, plan, compute, buckets, {});
  const PlanTravel travel = plan_travel(plan, dag, steady_state(dag));
  EXPECT_NEAR(travel.period.value(), 16.5, 1e-9);
  ASSERT_EQ(travel.buckets.size(), 2u);
  const double expected[2][4] = {{6, 6, 11, 1}, {10, 11, 16, 5}};
  for (std::size_t b = 0; b < 2; ++b) {
    EXPECT_NEAR(travel.buckets[b].ready.value(), expected[b][0], 1e-9);
    EXPECT_NEAR(travel.buckets[b].start.value(), expected[b][1], 1e-9);
    EXPECT_NEAR(travel.buckets[b].end.value(), expected[b][2], 1e-9);
    EXPECT_NEAR(travel.buckets[b].exposed.value(), expected[b][3], 1e-9);
  }
  ASSERT_EQ(travel.compute.size(), 5u);
  EXPECT_EQ(travel.compute[2].kind, TaskKind::backward);
  EXPECT_EQ(travel.compute[2].layer, 1);
  ASSERT_EQ(travel.idle.size(), 1u);
  EXPECT_NEAR(travel.idle[0].start.value(), 10, 1e-9);
  EXPECT_NEAR(travel.idle[0].end.value(), 16, 1e-9);
}

// Computation and standing still fill the period; on one in-order stream no bucket starts before it is
// ready or before the one in front of it is done, and what stands still stands still for buckets.
TEST(PlanTravel, FillsThePeriod) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    const Overlap overlap = trial % 3 == 0   ? Overlap::none
                            : trial % 3 == 1 ? Overlap::wait_free
                                             : Overlap::double_buffered;
    const test::RandomJob job = test::random_job(random, overlap);
    const IterationDag dag(job.network, job.plan, job.compute, job.buckets, {});
    const SteadyIteration steady = steady_state(dag);
    if (!steady.converged || steady.period == Seconds{0}) continue;
    const PlanTravel travel = plan_travel(job.plan, dag, steady);
    Seconds computing;
    for (const ComputeSpan& span : travel.compute) computing += span.end - span.start;
    Seconds idle;
    for (const ComputeSpan& span : travel.idle) idle += span.end - span.start;
    EXPECT_NEAR((computing + idle).value(), travel.period.value(), 1e-6) << trial;
    Seconds exposed;
    Seconds before{-1e9};
    for (const BucketTravel& bucket : travel.buckets) {
      EXPECT_GE(bucket.start.value(), bucket.ready.value() - 1e-9);
      EXPECT_GE(bucket.start.value(), before.value() - 1e-9);
      EXPECT_LE(bucket.exposed.value(), (bucket.end - bucket.start).value() + 1e-9);
      before = bucket.end;
      exposed += bucket.exposed;
    }
    EXPECT_NEAR(exposed.value(), idle.value(), 1e-6) << trial;
    EXPECT_NEAR(idle.value(), time_spent(dag, steady).exposed_communication.value(), 1e-6);
  }
}

}  // namespace
}  // namespace paceline::simulator

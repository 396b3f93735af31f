#include "simulator/iteration/sketch.h"

#include <gtest/gtest.h>

#include <random>

#include "simulator/iteration/steady_state.h"
#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

using test::random_job;
using test::RandomJob;

std::vector<Seconds> totals(const RandomJob& job) {
  std::vector<Seconds> times;
  for (const BucketTimes& bucket : job.buckets) times.push_back(bucket.total());
  return times;
}

// The compute time that each bucket costs if it takes this share of computation's speed.
std::vector<Seconds> lost(const std::vector<Seconds>& buckets, double share) {
  std::vector<Seconds> times = buckets;
  for (Seconds& time : times) time *= share;
  return times;
}

// Where nothing is slowed and one stream sends in order, the sketch is the DAG.
TEST(IterationSketch, IsTheDagWithoutSlowdown) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    RandomJob job = random_job(random);
    job.plan.streams = 1;
    for (const models::Overlap overlap : {models::Overlap::wait_free, models::Overlap::none}) {
      job.plan.overlap = overlap;
      const IterationDag dag(job.network, job.plan, job.compute, job.buckets, {});
      const IterationSketch sketch(job.network, job.plan, job.compute);
      EXPECT_NEAR(sketch.period(1, totals(job), lost(totals(job), 0)).value(),
                  steady_state(dag).period.value(), 1e-9)
          << trial << ' ' << name(overlap);
    }
  }
}

// Whatever takes longer, the iteration does not take less.
TEST(IterationSketch, GrowsWithEverything) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 300; ++trial) {
    const RandomJob job = random_job(random);
    const IterationSketch sketch(job.network, job.plan, job.compute);
    std::vector<Seconds> buckets = totals(job);
    const Seconds least = sketch.period(1, buckets, lost(buckets, 0));
    EXPECT_GE(sketch.period(1.1, buckets, lost(buckets, 0)), least);
    EXPECT_GE(sketch.period(1, buckets, lost(buckets, 1 - 1 / 1.3)), least);
    EXPECT_LE(sketch.period(1, buckets, lost(buckets, 1 - 1 / 1.3)), 1.3 * least * (1 + 1e-12));
    for (Seconds& bucket : buckets) bucket *= 1.2;
    EXPECT_GE(sketch.period(1, buckets, lost(buckets, 0)), least);
  }
}

// One layer of 2 s backward below a bucket of 3 s: all of it runs at half its speed for 3 s, and so
// does half of a second layer of 3 s; the rest of that is alone.
TEST(IterationSketch, SlowsComputationWhileACollectiveIsOnItsWay) {
  const models::NetworkWork network = test::chain_network({10, 10});
  const models::Plan plan =
      models::make_plan(models::strategy("ring"), network.gradients, 2, models::WireType::fp32, {});
  ComputeTimes compute;
  compute.layers = {{Seconds{0}, Seconds{4}}, {Seconds{1}, Seconds{2}}};
  const IterationSketch sketch(network, plan, compute);
  // 1 + 2, then 3 s beside the first bucket (1.5 s of work), 2.5 s alone, then 1 s of the second.
  const std::vector<Seconds> buckets = {Seconds{3}, Seconds{1}};
  EXPECT_NEAR(sketch.period(1, buckets, lost(buckets, 0.5)).value(), 9.5, 1e-12);
}

}  // namespace
}  // namespace paceline::simulator

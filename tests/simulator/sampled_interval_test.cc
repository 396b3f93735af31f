#include "simulator/iteration/sampled_interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "models/base/interval.h"
#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

Figure<double> figure(double value, double low, double high) {
  return {value, low, high, Provenance::assumed, "test"};
}

// Effects that neither slow anything nor are uncertain.
models::Effects no_effects() {
  const Figure<double> none = figure(0, 0, 0);
  const auto no_time = Figure<Seconds>::exact(Seconds{0}, Provenance::assumed, "test");
  return {.rank_spread = none,
          .jitter = none,
          .crowding = figure(1, 1, 1),
          .slowdown = none,
          .memory_bound = none,
          .collective_launch = no_time,
          .layer_launch = no_time,
          .host_launch = no_time,
          .host_launch_transformer = no_time,
          .host_update =
              Figure<BytesPerSecond>::exact(BytesPerSecond{55e9}, Provenance::assumed, "none"),
          .unexplained = none,
          .unexplained_doubling = none,
          .unexplained_exposed = none};
}

struct Job {
  models::NetworkWork network = test::chain_network({10, 10});
  models::Plan plan = models::make_plan(models::strategy("ring"), network.gradients, 16,
                                        models::WireType::fp32, {});
  ComputeTimes compute{.layers = {{Seconds{1}, Seconds{4}}, {Seconds{2}, Seconds{3}}},
                       .update = Seconds{0.5},
                       .provenance = {},
                       .source = {}};
  models::Effects effects = no_effects();
  std::vector<Seconds> buckets = std::vector<Seconds>(2, Seconds{5});
  double links = 1;  // slow over stated
  double slow_compute = 1;
  int ranks = 16;
  int calibrated_ranks = 1;
  double exposed = 0;

  [[nodiscard]] IntervalFactors factors() const { return spread().interval(); }
  [[nodiscard]] IterationSpread spread() const {
    const IterationSketch sketch(network, plan, compute);
    BucketRange range{buckets, buckets, buckets};
    for (Seconds& time : range.slow) time *= links;
    for (Seconds& time : range.fast) time /= links;
    return sampled_spread({.sketch = sketch,
                           .buckets = range,
                           .fast_compute = 1 / slow_compute,
                           .slow_compute = slow_compute,
                           .effects = effects,
                           .ranks = ranks,
                           .calibrated_ranks = calibrated_ranks,
                           .ranks_per_node = 8,
                           .multiprocessors = 80,
                           .memory = BytesPerSecond{900e9},
                           .moved = std::vector<Bytes>(buckets.size(), Bytes{5 * 12e9}),
                           .exposed = exposed});
  }
  [[nodiscard]] double width() const { return factors().high - factors().low; }
};

TEST(SampledInterval, IsAPointWhereEverythingIsKnown) {
  const IntervalFactors factors = Job().factors();
  EXPECT_DOUBLE_EQ(factors.low, 1);
  EXPECT_DOUBLE_EQ(factors.high, 1);
}

TEST(SampledInterval, HoldsTheMiddle90PercentOfWhatIsUnexplained) {
  Job job;
  job.effects.unexplained = figure(0.05, 0.05, 0.05);
  EXPECT_NEAR(std::log(job.factors().high), 0.05 * normal_reach, 0.006);
  EXPECT_NEAR(std::log(job.factors().low), -0.05 * normal_reach, 0.006);
}

TEST(SampledInterval, WidensWithWhateverIsUncertain) {
  Job job;
  double before = job.width();
  job.slow_compute = 1.05;
  EXPECT_LT(before, job.width());
  before = job.width();
  job.links = 1.5;
  EXPECT_LT(before, job.width());
  before = job.width();
  job.effects.jitter = figure(0.001, 0.0005, 0.3);
  EXPECT_LT(before, job.width());
  before = job.width();
  job.effects.unexplained_exposed = figure(0.2, 0.2, 0.2);
  job.exposed = 0.5;
  EXPECT_LT(before, job.width());
}

TEST(SampledInterval, WidensWithTheDistanceFromWhatWasCalibrated) {
  Job near;
  near.effects.rank_spread = figure(0.02, 0.01, 0.05);
  near.effects.unexplained_doubling = figure(0.02, 0.02, 0.02);
  near.calibrated_ranks = 8;
  Job far = near;
  far.calibrated_ranks = 1;
  EXPECT_LT(near.width(), far.width());
  far.ranks = 1024;
  Job farther = far;
  farther.ranks = 65536;
  EXPECT_LT(far.width(), farther.width());
}

// A ring of slow links whose buckets are all exposed: the interval is that of the links.
TEST(SampledInterval, IsThatOfTheLinksWhereOnlyTheyCount) {
  Job job;
  job.compute.layers = {{Seconds{0}, Seconds{0}}, {Seconds{0}, Seconds{0}}};
  job.compute.update = Seconds{0};
  job.links = 1.1;
  EXPECT_NEAR(job.factors().high, 1.1, 0.01);
  EXPECT_NEAR(job.factors().low, 1 / 1.1, 0.01);
}

TEST(SampledInterval, WhatSlowsTwoIterationsAlikeCancelsInTheirRatio) {
  Job job;
  job.slow_compute = 1.3;
  job.effects.unexplained = figure(0.05, 0.05, 0.05);
  const IntervalFactors same = ratio_interval(job.spread(), job.spread(), 0);
  EXPECT_DOUBLE_EQ(same.low, 1);
  EXPECT_DOUBLE_EQ(same.high, 1);
  const IntervalFactors unexplained = ratio_interval(job.spread(), job.spread(), 0.05);
  EXPECT_NEAR(std::log(unexplained.high), 0.05 * normal_reach, 0.006);
  // Uncertain links of one iteration alone stay in the ratio.
  Job other = job;
  other.links = 1.5;
  const IntervalFactors links = ratio_interval(other.spread(), job.spread(), 0);
  EXPECT_LT(links.low, 0.99);
  EXPECT_GT(links.high, 1.01);
}

TEST(SampledInterval, RepeatsItself) {
  Job job;
  job.effects.jitter = figure(0.02, 0.01, 0.05);
  EXPECT_EQ(job.factors().low, job.factors().low);
  EXPECT_EQ(job.factors().high, job.factors().high);
}

// The latency that streams may hide is one share for all plans. It moves nothing where there is none.
TEST(SampledInterval, ReachesFromAllLatencyHiddenToNone) {
  Job job;
  job.slow_compute = 1.2;
  job.effects.unexplained = figure(0.05, 0.05, 0.05);
  const IterationSpread hidden = job.spread();
  EXPECT_EQ(hidden.with_unhidden(), hidden.factors);
  std::vector<double> shares;
  for (const double unhidden : {-0.2, 0.01, 0.4}) {
    IterationSpread spread = hidden;
    spread.unhidden = unhidden;
    const std::vector<double> factors = spread.with_unhidden();
    ASSERT_EQ(factors.size(), hidden.factors.size());
    std::vector<double> drawn;
    for (std::size_t i = 0; i < factors.size(); ++i) {
      drawn.push_back((factors[i] / hidden.factors[i] - 1) / unhidden);
      EXPECT_NEAR(spread.samples()[i] / factors[i], hidden.samples()[i] / hidden.factors[i], 1e-12);
      if (!shares.empty()) EXPECT_NEAR(drawn[i], shares[i], 1e-9);
    }
    shares = drawn;
    const IntervalFactors interval = spread.interval();
    EXPECT_LE(interval.low, std::min(1.0, 1 + unhidden));
    EXPECT_GE(interval.high, std::max(1.0, 1 + unhidden));
    EXPECT_GT(interval.high - interval.low, hidden.interval().high - hidden.interval().low);
  }
  std::sort(shares.begin(), shares.end());
  EXPECT_GE(shares.front(), 0);
  EXPECT_LE(shares.back(), 1);
  const auto count = static_cast<double>(shares.size());
  for (std::size_t i = 0; i < shares.size(); ++i)
    EXPECT_NEAR(shares[i], (static_cast<double>(i) + 0.5) / count, 0.06) << "uniform";
}

TEST(SampledInterval, NothingIsWidenedButByWhatStreamsMayHide) {
  IterationSpread known;
  known.factors.assign(512, 1.0);
  known.unhidden = 0.25;
  EXPECT_DOUBLE_EQ(known.interval().low, 1);
  EXPECT_DOUBLE_EQ(known.interval().high, 1.25);
  IterationSpread more = known;
  more.unhidden = 0.5;
  const IntervalFactors ratio = ratio_interval(more, known, 0);
  EXPECT_DOUBLE_EQ(ratio.low, 1);
  EXPECT_DOUBLE_EQ(ratio.high, 1.2);
}

}  // namespace
}  // namespace paceline::simulator

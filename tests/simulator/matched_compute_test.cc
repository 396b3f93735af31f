#include "simulator/prediction/matched_compute.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "models/network/zoo.h"

namespace paceline::simulator {
namespace {

struct Job {
  models::NetworkWork network = models::work(models::zoo_network("resnet50"));
  models::Cluster cluster = models::catalog_cluster("jizhi-p40");
  models::Profile profile{
      .name = "test", .cluster = "jizhi-p40", .device = "p40", .origin = "test"};

  [[nodiscard]] PredictionRequest request(int ranks) const {
    return {{}, network, cluster, &profile, ranks, models::WireType::fp16};
  }
  // The throughput of the job on this many ranks, with another profile.
  [[nodiscard]] double throughput(int ranks, const models::Strategy& strategy,
                                  const models::Profile& with) const {
    PredictionRequest asked = request(ranks);
    asked.profile = &with;
    return Predictor(asked).predict(strategy).throughput.value();
  }
};

Figure<PerSecond> figure(double rate) {
  return {PerSecond{rate}, PerSecond{0.99 * rate}, PerSecond{1.01 * rate}, Provenance::published,
          "a test"};
}

// Whatever the strategy, the job that was measured is predicted as it was measured.
TEST(MatchedCompute, GivesTheMeasuredThroughputBack) {
  const Job job;
  for (const char* name : {"no-overlap", "ring", "fused-ring", "parameter-server", "hybrid"}) {
    const models::Strategy& strategy = models::strategy(name);
    for (const double rate : {400.0, 900.0, 1500.0}) {
      const models::Profile found = calibrated_with(job.request(8), strategy, figure(rate));
      EXPECT_NEAR(job.throughput(8, strategy, found) / rate, 1, 1e-6) << name << " " << rate;
      const Figure<PerSecond>& alone = found.throughputs.front().samples;
      EXPECT_GT(alone.value.value(), rate / 8) << name;
      EXPECT_LT(alone.low, alone.value);
      EXPECT_GT(alone.high, alone.value);
    }
  }
}

TEST(MatchedCompute, ThroughputOfOneRankIsTakenAsItIs) {
  const Job job;
  const models::Profile found =
      calibrated_with(job.request(1), models::strategy("ring"), figure(218));
  ASSERT_EQ(found.throughputs.size(), 1U);
  EXPECT_EQ(found.throughputs.front().samples, figure(218));
  EXPECT_NEAR(job.throughput(1, models::strategy("ring"), found), 218, 1e-6);
}

// With both points, one rank and the node are both predicted as they were measured.
TEST(MatchedCompute, TwoPointsSayWhatANodeLoses) {
  Job job;
  const models::Strategy& strategy = models::strategy("fused-ring");
  job.profile = calibrated_with(job.request(1), strategy, figure(218));
  for (const double rate : {1400.0, 1650.0}) {
    const models::Profile found = calibrated_with(job.request(8), strategy, figure(rate));
    ASSERT_EQ(found.slowdowns.size(), 1U);
    EXPECT_NEAR(job.throughput(8, strategy, found) / rate, 1, 1e-6);
    EXPECT_NEAR(job.throughput(1, strategy, found), 218, 1e-6);
    EXPECT_LE(found.slowdowns.front().factor.low, found.slowdowns.front().factor.value);
    EXPECT_LE(found.slowdowns.front().factor.value, found.slowdowns.front().factor.high);
    // It holds for all larger jobs, too.
    EXPECT_NEAR(job.throughput(16, strategy, found) / job.throughput(8, strategy, found), 2, 0.05);
  }
}

// From fast to slow: faster than without any slowdown, slowed beside collectives alone, and slower
// than an iteration without overlap would be.
TEST(MatchedCompute, WhatANodeLosesIsLostBesideCollectivesFirst) {
  Job job;
  const models::Strategy& strategy = models::strategy("fused-ring");
  job.profile = calibrated_with(job.request(1), strategy, figure(218));
  const auto matched = [&](double rate) {
    return matched_slowdown(job.request(8), strategy, PerSecond{rate});
  };
  const auto with = [&](double factor, double beside) {
    models::Profile profile = job.profile;
    const auto exact = [](double value) {
      return Figure<double>::exact(value, Provenance::calibrated, "a test");
    };
    profile.slowdowns = {{"resnet50", models::Precision::mixed, exact(factor), 1, exact(beside)}};
    return job.throughput(8, strategy, profile);
  };
  const MatchedSlowdown faster = matched(1.05 * with(1, 1));
  EXPECT_EQ(faster.beside_traffic, 1);
  EXPECT_LT(faster.factor, 1);
  for (const double beside : {1.2, 2.0, 3.0}) {
    const MatchedSlowdown found = matched(with(1, beside));
    ASSERT_TRUE(found.beside_traffic);
    EXPECT_NEAR(*found.beside_traffic, beside, 1e-3 * beside);
    EXPECT_NEAR(found.factor, 1, 1e-6);
  }
  const MatchedSlowdown slower = matched(with(1.2, most_beside));
  EXPECT_EQ(slower.beside_traffic, most_beside);
  EXPECT_NEAR(slower.factor, 1.2, 1e-6);
}

TEST(MatchedCompute, AllIsLostByComputationWhereNoCollectiveCanSlowIt) {
  Job job;
  const models::Strategy& ring = models::strategy("fused-ring");
  job.profile = calibrated_with(job.request(1), ring, figure(218));
  for (const char* name : {"no-overlap", "parameter-server"}) {
    const MatchedSlowdown found =
        matched_slowdown(job.request(8), models::strategy(name), PerSecond{1400});
    EXPECT_FALSE(found.beside_traffic) << name;
    EXPECT_GT(found.factor, 1) << name;
  }
  ASSERT_TRUE(job.cluster.effects);
  job.cluster.effects->slowdown = Figure<double>::exact(0, Provenance::assumed, "a test");
  EXPECT_FALSE(matched_slowdown(job.request(8), ring, PerSecond{1400}).beside_traffic);
}

TEST(MatchedCompute, SaysWhatCommunicationAllows) {
  const Job job;
  try {
    (void)matched_throughput(job.request(16), models::strategy("no-overlap"), PerSecond{1e6});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what())
                  .find("1000000 samples/s of 16 ranks are more than "
                        "no-overlap allows; communication alone takes "),
              0U)
        << error.what();
  }
}

TEST(MatchedCompute, ThroughputsOfSeveralRanksAreNoRatesOfOne) {
  Job job;
  const double by_roofline = job.throughput(1, models::strategy("ring"), job.profile);
  models::Profile profile = job.profile;
  profile.throughputs = {{"resnet50", models::Precision::mixed, 64, figure(9999), 8}};
  EXPECT_DOUBLE_EQ(job.throughput(1, models::strategy("ring"), profile), by_roofline);
}

}  // namespace
}  // namespace paceline::simulator

#include "simulator/iteration/matched_compute.h"

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
    return {.network = network,
            .cluster = cluster,
            .profile = &profile,
            .ranks = ranks,
            .batch_per_rank = 64,
            .precision = models::Precision::mixed,
            .wire = models::WireType::fp16};
  }
  // The throughput of the job on so many ranks, with another profile.
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
    EXPECT_NEAR(job.throughput(16, strategy, found) / job.throughput(8, strategy, found), 2, 0.02);
  }
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

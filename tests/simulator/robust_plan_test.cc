// The robust plan is the best in bad states of the world, by the same samples for all plans.
#include "simulator/iteration/robust_plan.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "models/cluster/catalog.h"
#include "simulator/iteration/tuned_plan.h"
#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

struct Job {
  models::NetworkWork network;
  models::Cluster cluster;
  std::uint64_t seed = sampling_seed;

  [[nodiscard]] PredictionRequest request() const {
    return {.network = network,
            .cluster = cluster,
            .ranks = 32,
            .batch_per_rank = 16,
            .precision = models::Precision::mixed,
            .wire = models::WireType::fp16,
            .engine = EngineKind::step,
            .sampling_seed = seed};
  }
};

Job random_job(std::mt19937& random) {
  std::vector<std::int64_t> elements(3 + random() % 8);
  for (std::int64_t& count : elements)
    count = std::int64_t{1} << std::uniform_int_distribution<int>(8, 22)(random);
  const char* clusters[] = {"jizhi-p40", "h200-ndr", "aws-p3-16xlarge"};
  Job job{test::chain_network(elements), models::catalog_cluster(clusters[random() % 3])};
  if (random() % 4 == 0) job.cluster.effects.reset();
  return job;
}

std::vector<RobustCandidate> candidates_of(Predictor& predictor, const models::Plan& best) {
  std::vector<RobustCandidate> all = {{"tuned", best, predictor.sampled(best)}};
  for (const char* name : {"ring", "fused-ring", "hierarchical"})
    all.push_back({name, predictor.run(models::strategy(name)).plan,
                   sampled(predictor.predict(models::strategy(name)))});
  for (models::Plan& plan : predictor.plans_of_worlds(best, 8, {}, {})) {
    SampledIteration time = predictor.sampled(plan);
    all.push_back({"state", std::move(plan), std::move(time)});
  }
  return all;
}

TEST(RobustPlan, IsNeverWorseThanTheBestAsStatedOnTheSameSamples) {
  std::mt19937 random(31);
  for (int round = 0; round < 20; ++round) {
    const Job job = random_job(random);
    Predictor predictor(job.request());
    const TunedPlan tuned = predictor.tune({});
    const std::vector<RobustCandidate> all = candidates_of(predictor, tuned.plan);
    EXPECT_GT(all.size(), 4U) << "states have plans of their own";
    const RobustCandidate& robust = all[most_robust(all)];
    if (tuned.is_optimal) {
      EXPECT_GE(robust.time.period.value(), tuned.period.value() * (1 - 1e-9));
    }
    EXPECT_LE(p95(robust.time), p95(all[0].time));
    for (const RobustCandidate& other : all) {
      EXPECT_EQ(other.time.samples().size(), all[0].time.samples().size());
      EXPECT_EQ(other.time.period, predictor.run(other.plan).steady.period);
      const PairedGain gain = paired_gain(robust.time, other.time);
      EXPECT_LE(gain.low, gain.high);
    }
    const PairedGain none = paired_gain(robust.time, robust.time);
    EXPECT_EQ(none.value, 0);
    EXPECT_EQ(none.low, 0);
    EXPECT_EQ(none.high, 0);
    EXPECT_TRUE(none.includes_none());
  }
}

RobustCandidate drawn(const char* name, Seconds period, std::vector<double> factors) {
  return {name, {}, {period, {.factors = std::move(factors)}}};
}

// Plans that differ by less than so many samples can tell are told apart by their stated times.
TEST(RobustPlan, IsTheShorterAsStatedWhereThePercentilesCannotTell) {
  std::mt19937 random(47);
  std::uniform_real_distribution<double> state(0.9, 1.3);
  std::normal_distribution<double> noise(1, 0.002);
  constexpr int rounds = 40;
  int shorter = 0;
  int not_the_least = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> factors(512);
    for (double& factor : factors) factor = state(random);
    std::vector<double> longer = factors;
    for (double& factor : longer) factor *= noise(random) / 1.01;
    std::vector<double> bad = factors;
    for (double& factor : bad) factor = 1 + 2 * (factor - 1);
    const std::vector<RobustCandidate> all = {drawn("shortest", Seconds{0.99}, bad),
                                              drawn("longer", Seconds{1.01}, longer),
                                              drawn("shorter", Seconds{1.0}, factors)};
    const std::string chosen = all[most_robust(all)].name;
    EXPECT_NE(chosen, "shortest");
    shorter += chosen == "shorter" ? 1 : 0;
    not_the_least += p95(all[1].time) < p95(all[2].time) ? 1 : 0;
  }
  EXPECT_GE(shorter, rounds * 3 / 4);
  EXPECT_GE(not_the_least, rounds / 8) << "some rounds try the rule";
}

TEST(RobustPlan, SamplesAreThoseOfThePredictedInterval) {
  std::mt19937 random(37);
  for (int round = 0; round < 6; ++round) {
    const Job job = random_job(random);
    Predictor predictor(job.request());
    const StrategyPrediction row = predictor.predict(models::strategy("fused-ring"));
    const SampledIteration own = sampled(row);
    EXPECT_EQ(own.samples(), predictor.sampled(row.plan).samples());
    const IntervalFactors interval = own.spread.interval();
    EXPECT_NEAR(interval.low * row.iteration.value.value(), row.iteration.low.value(),
                0.05 * row.iteration.value.value());
    EXPECT_NEAR(interval.high * row.iteration.value.value(), row.iteration.high.value(),
                0.05 * row.iteration.value.value());
  }
}

// Every figure exact: all states are the stated one.
TEST(RobustPlan, IsTheTunedPlanWhereEverythingIsKnown) {
  std::mt19937 random(41);
  for (int round = 0; round < 6; ++round) {
    Job job = random_job(random);
    job.cluster.effects.reset();
    Predictor predictor(job.request());
    const models::Plan best = predictor.tune({}).plan;
    std::vector<RobustCandidate> all = candidates_of(predictor, best);
    for (RobustCandidate& candidate : all) candidate.time.spread = spread_between({1, 1});
    EXPECT_EQ(most_robust(all), 0U);
    EXPECT_EQ(p95(all[0].time), all[0].time.period);
  }
}

TEST(RobustPlan, ASeedRepeatsItself) {
  std::mt19937 random(43);
  Job job = random_job(random);
  const auto samples = [&job](std::uint64_t seed) {
    job.seed = seed;
    Predictor predictor(job.request());
    return predictor.sampled(predictor.run(models::strategy("ring")).plan).samples();
  };
  const std::vector<Seconds> first = samples(5);
  EXPECT_EQ(first, samples(5));
  EXPECT_NE(first, samples(6));
}

}  // namespace
}  // namespace paceline::simulator

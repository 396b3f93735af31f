// What a change of a tuned plan loses is what predicting the changed plan says, and no change that is
// listed as the next best is beaten by another of its kind.
#include "simulator/iteration/alternatives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "models/base/error.h"
#include "models/cluster/catalog.h"
#include "simulator/iteration/tuned_plan.h"
#include "simulator/prediction/prediction.h"
#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

struct Job {
  models::NetworkWork network;
  models::Cluster cluster;
  int ranks = 1;
  EngineKind engine = EngineKind::step;
  models::Overlap overlap = models::Overlap::wait_free;

  [[nodiscard]] PredictionRequest request() const {
    return {{.batch_per_rank = 16, .overlap = overlap, .engine = engine},
            network,
            cluster,
            nullptr,
            ranks,
            models::WireType::fp16};
  }
};

Job random_job(std::mt19937& random) {
  const auto one_of = [&random](auto values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(random() % values.size()));
  };
  std::vector<std::int64_t> elements(2 + random() % 9);
  for (std::int64_t& count : elements)
    count = std::int64_t{1} << std::uniform_int_distribution<int>(4, 22)(random);
  Job job{test::chain_network(elements),
          models::catalog_cluster(one_of(std::vector{"jizhi-p40", "h200-ndr", "aws-p3-16xlarge"})),
          one_of(std::vector{8, 16, 24, 32}),
          one_of(std::vector{EngineKind::step, EngineKind::step, EngineKind::automatic}),
          one_of(std::vector{models::Overlap::wait_free, models::Overlap::wait_free,
                             models::Overlap::none, models::Overlap::double_buffered})};
  if (random() % 3 == 0) job.cluster.effects.reset();
  return job;
}

TunedPlan explained(Predictor& predictor) {
  TuningRequest request;
  request.explain = true;
  return predictor.tune(request);
}

TEST(Alternatives, ALossIsThatOfPredictingTheChangedPlan) {
  std::mt19937 random(23);
  std::set<ChangeKind> seen;
  for (int round = 0; round < 60; ++round) {
    const Job job = random_job(random);
    SCOPED_TRACE(testing::Message()
                 << "round " << round << ", " << job.cluster.name << ", " << job.ranks << ", "
                 << name(job.engine) << ", " << name(job.overlap));
    Predictor predictor(job.request());
    const TunedPlan tuned = explained(predictor);
    ASSERT_EQ(tuned.alternatives.size(), tuned.plan.buckets.size());
    for (std::size_t i = 0; i < tuned.alternatives.size(); ++i) {
      ASSERT_FALSE(tuned.alternatives[i].empty());
      Seconds before;
      for (const Alternative& alternative : tuned.alternatives[i]) {
        const PlanChange& change = alternative.change;
        EXPECT_EQ(change.bucket, static_cast<int>(i));
        const models::Plan other = changed(tuned.plan, change, job.network.gradients);
        EXPECT_FALSE(other == tuned.plan);
        EXPECT_EQ(std::accumulate(other.buckets.begin(), other.buckets.end(), std::int64_t{0},
                                  [](std::int64_t sum, const models::Bucket& bucket) {
                                    return sum + bucket.elements;
                                  }),
                  job.network.parameters());
        const double period = predictor.run(other).steady.period.value();
        ASSERT_NEAR(alternative.period.value(), period, 1e-9 * period) << name(change.kind);
        ASSERT_GE(period, tuned.period.value() * (1 - 2e-6)) << name(change.kind);
        EXPECT_GE(alternative.period, before);
        before = alternative.period;
        seen.insert(change.kind);
      }
    }
  }
  EXPECT_EQ(seen.size(), 5U);
}

// The test asks the step engine for the time of every all-reduce.
TEST(Alternatives, TheNextBestAllReduceIsTheBestOfTheOthers) {
  std::mt19937 random(29);
  for (int round = 0; round < 8; ++round) {
    Job job = random_job(random);
    job.engine = EngineKind::step;
    job.overlap = models::Overlap::wait_free;
    Predictor predictor(job.request());
    const TunedPlan tuned = explained(predictor);
    const std::size_t i = random() % tuned.plan.buckets.size();
    const auto found =
        std::find_if(tuned.alternatives[i].begin(), tuned.alternatives[i].end(),
                     [](const Alternative& a) { return a.change.kind == ChangeKind::all_reduce; });
    ASSERT_NE(found, tuned.alternatives[i].end());
    PlanChange change = found->change;
    for (const CandidateOptions& options :
         catalogue_options(job.ranks, job.cluster.ranks_per_node)) {
      try {
        change.parts[0].all_reduce = {std::string(options.algorithm->name), options.options,
                                      options.algorithm->build(options.options)};
      } catch (const InputError&) {
        continue;
      }
      const models::PlannedSchedule& own =
          tuned.plan.schedules[static_cast<std::size_t>(tuned.plan.buckets[i].schedule)];
      const std::string words = described(change.parts[0].all_reduce);
      if (change.parts[0].all_reduce == own ||
          std::find(found->alike.begin(), found->alike.end(), words) != found->alike.end())
        continue;
      const models::Plan other = changed(tuned.plan, change, job.network.gradients);
      ASSERT_GE(predictor.run(other).steady.period.value(), found->period.value() * (1 - 1e-9))
          << words << " is better than " << described(found->change.parts[0].all_reduce);
    }
  }
}

TEST(Alternatives, OneRankHasNone) {
  const Job job{test::chain_network({10, 20}), models::catalog_cluster("jizhi-p40"), 1};
  Predictor predictor(job.request());
  EXPECT_TRUE(explained(predictor).alternatives.empty());
}

}  // namespace
}  // namespace paceline::simulator

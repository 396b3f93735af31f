// The planner's clock is the DAG's, tuned plans are the best that there are, and bounds are bounds.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "models/cluster/catalog.h"
#include "models/network/zoo.h"
#include "models/plan/plan_json.h"
#include "simulator/iteration/plan_timing.h"
#include "simulator/iteration/tuned_plan.h"
#include "simulator/planner/stream_clock.h"
#include "simulator/prediction/prediction.h"
#include "tests/simulator/small_job.h"

namespace paceline::simulator {
namespace {

// The period by the clock, with the buckets' own times.
double period_by_clock(const test::RandomJob& job, const StreamClock& clock) {
  StreamState state;
  for (std::size_t i = 0; i < job.plan.buckets.size(); ++i) {
    const models::Bucket& bucket = job.plan.buckets[i];
    const auto last = static_cast<std::size_t>(bucket.first_gradient + bucket.gradient_count - 1);
    const double traffic_s =
        clock.load.full_s(job.plan.bytes(bucket).value(), job.buckets[i].all_reduce.value());
    state = state.after({job.buckets[i].total().value(), traffic_s}, clock.ready_s[last],
                        clock.slowing);
  }
  return state.done_s(clock) + clock.update_s;
}

TEST(StreamClock, IsThePeriodOfTheDagToRounding) {
  std::mt19937 random(8);
  for (int round = 0; round < 300; ++round) {
    const auto overlap = random() % 3 == 0 ? models::Overlap::none : models::Overlap::wait_free;
    test::RandomJob job = test::random_job(random, overlap);
    if (round % 4 != 0) {
      const double times_as_long = 1 + static_cast<double>(random() % 300) / 100;
      job.compute.beside_traffic = job.compute.layers;
      for (LayerTime& layer : job.compute.beside_traffic) {
        layer.forward *= times_as_long;
        layer.backward *= times_as_long;
      }
      if (round % 4 != 1)
        job.compute.load = {.least = static_cast<double>(random() % 100) / 100,
                            .a_byte = SecondsPerByte{static_cast<double>(random() % 100) * 1e-8}};
    }
    const auto timed_with = [&](const ComputeTimes& compute) {
      return IterationDag(job.network, job.plan, compute, job.buckets, {});
    };
    TimedIteration iteration{timed_with(job.compute), {}};
    iteration.steady = steady_state(iteration.dag);
    if (!job.compute.beside_traffic.empty())
      iteration = stretched(std::move(iteration), job.compute, timed_with);
    const StreamClock clock = stream_clock(job.network, job.compute, overlap, true);
    EXPECT_TRUE(clock.is_even);
    const double period = iteration.steady.period.value();
    ASSERT_NEAR(period_by_clock(job, clock), period, 1e-9 * period) << "round " << round;
  }
}

struct Job {
  models::NetworkWork network;
  models::Cluster cluster;
  int ranks;
  EngineKind engine;

  [[nodiscard]] PredictionRequest request() const {
    return {{.batch_per_rank = 32, .engine = engine},
            network,
            cluster,
            nullptr,
            ranks,
            models::WireType::fp16};
  }
};

models::NetworkWork first_gradients(std::int64_t scale) {
  return test::chain_network(
      {scale, 40 * scale, 3 * scale, 900 * scale, 7 * scale, 200 * scale, scale, 2500 * scale});
}

models::Plan random_plan(std::mt19937& random, const TunedPlan& tuned, const Job& job) {
  models::Plan plan = tuned.plan;
  plan.schedules.clear();
  plan.buckets.clear();
  const auto add = [&](std::string_view algorithm) {
    const models::CollectiveAlgorithm& entry = models::all_reduce_algorithm(algorithm);
    const models::ScheduleOptions options =
        models::taken_options(entry, {.ranks = job.ranks, .group_size = 4, .segments = 8});
    plan.schedules.push_back({std::string(algorithm), options, entry.build(options)});
  };
  for (const char* name : {"ring", "halving-doubling", "torus-2d", "hierarchical",
                           "double-binary-tree", "recursive-doubling", "direct-exchange"})
    add(name);
  models::Bucket open;
  for (std::size_t i = 0; i < job.network.gradients.size(); ++i) {
    open.elements += job.network.gradients[i].elements;
    ++open.gradient_count;
    if (i + 1 < job.network.gradients.size() && random() % 2 == 0) continue;
    open.schedule = static_cast<int>(random() % plan.schedules.size());
    plan.buckets.push_back(open);
    open = {.first_gradient = static_cast<int>(i) + 1};
  }
  return plan;
}

TEST(Tuning, NoPlanIsBetterAndTheBoundIsOne) {
  std::mt19937 random(19);
  for (const std::int64_t scale : {100, 3000, 100'000}) {
    for (const EngineKind engine : {EngineKind::step, EngineKind::automatic}) {
      const Job job{first_gradients(scale), models::catalog_cluster("jizhi-p40"), 32, engine};
      Predictor predictor(job.request());
      TuningRequest request;
      for (const char* name : {"fused-ring", "torus-2d", "hierarchical-scatter"})
        request.seeds.push_back(predictor.run(models::strategy(name)).plan);
      const TunedPlan tuned = predictor.tune(request);
      SCOPED_TRACE(testing::Message() << "scale " << scale << ", " << name(engine));
      EXPECT_EQ(tuned.is_optimal, engine == EngineKind::step) << tuned.why_not;
      EXPECT_LE(tuned.least_period.value(), tuned.period.value() * (1 + 1e-12));
      EXPECT_EQ(predictor.run(tuned.plan).steady.period, tuned.period);
      for (const models::Plan& seed : request.seeds)
        EXPECT_LE(tuned.period.value(), predictor.run(seed).steady.period.value() * (1 + 1e-12));
      for (int round = 0; round < 150; ++round) {
        const double period = predictor.run(random_plan(random, tuned, job)).steady.period.value();
        ASSERT_GE(period, tuned.least_period.value() * (1 - 1e-12));
        if (tuned.is_optimal) {
          ASSERT_GE(period, tuned.period.value() * (1 - 1e-9));
        }
      }
    }
  }
}

// Calibrations on a busy machine have such layers.
TEST(Tuning, TheBoundHoldsWhereLayersAreFasterBesideTraffic) {
  std::mt19937 random(23);
  std::uniform_real_distribution<double> factor(0.2, 1.6);
  for (int round = 0; round < 12; ++round) {
    const Job job{first_gradients(3000), models::catalog_cluster("jizhi-p40"), 32,
                  EngineKind::automatic};
    models::Profile profile;
    profile.name = "drawn";
    for (const models::LayerWork& layer : job.network.layers) {
      const auto time = [&](double ms) {
        const Seconds value{ms * 1e-3};
        return Figure<Seconds>{value, value, value, Provenance::measured, "drawn"};
      };
      const double ms = 0.1 + 2 * factor(random);
      profile.layers.push_back({job.network.name, models::Precision::mixed, 32, layer.name,
                                time(ms), time(2 * ms), time(ms * factor(random)),
                                time(2 * ms * factor(random))});
    }
    PredictionRequest request = job.request();
    request.profile = &profile;
    for (const int streams : {1, 2}) {
      request.thresholds.streams = streams;
      Predictor predictor(request);
      int left = 20;  // plans, because the bound does not rest on the search
      const TunedPlan tuned = predictor.tune({.stop = [&left] { return --left < 0; }});
      ASSERT_LE(tuned.least_period.value(), tuned.period.value() * (1 + 1e-12))
          << "round " << round << ", " << streams << " streams";
      for (int i = 0; i < 20; ++i) {
        const double period = predictor.run(random_plan(random, tuned, job)).steady.period.value();
        ASSERT_GE(period, tuned.least_period.value() * (1 - 1e-12));
      }
    }
  }
}

TEST(Tuning, ThePlanIsADocumentOfAnyAlgorithm) {
  const Job job{first_gradients(3000), models::catalog_cluster("jizhi-p40"), 32, EngineKind::step};
  Predictor predictor(job.request());
  const TunedPlan tuned = predictor.tune({});
  EXPECT_EQ(tuned.plan.strategy, "tuned");
  const models::PlanDocument document = models::plan_document(tuned.plan, job.network);
  const models::PlanDocument read = models::parse_plan(to_json(document), "plan.json");
  EXPECT_EQ(read, document);
  const StrategyPrediction prediction = predictor.predict(read.plan);
  EXPECT_EQ(prediction.iteration.value, tuned.period);
  EXPECT_GT(prediction.efficiency, 0);
  EXPECT_THROW((void)models::make_plan(models::strategy("tuned"), job.network.gradients, 32,
                                       models::WireType::fp16, {}),
               InputError);
}

TEST(Tuning, StopsWhenItIsAskedTo) {
  const Job job{first_gradients(3000), models::catalog_cluster("jizhi-p40"), 32,
                EngineKind::automatic};
  Predictor predictor(job.request());
  TuningRequest request;
  request.stop = [] { return true; };
  const TunedPlan tuned = predictor.tune(request);
  EXPECT_FALSE(tuned.is_complete);
  EXPECT_EQ(tuned.evaluated, 1);
  EXPECT_FALSE(tuned.plan.buckets.empty());
}

}  // namespace
}  // namespace paceline::simulator

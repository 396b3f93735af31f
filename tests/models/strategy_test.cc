#include "models/plan/strategy.h"

#include <gtest/gtest.h>

#include <random>

#include "models/base/error.h"

namespace paceline::models {
namespace {

using namespace paceline::literals;

std::vector<Gradient> gradients_of(const std::vector<std::int64_t>& elements) {
  std::vector<Gradient> gradients;
  for (std::size_t i = 0; i < elements.size(); ++i)
    gradients.push_back({"g" + std::to_string(i), elements[i], static_cast<int>(i)});
  return gradients;
}

std::vector<std::int64_t> sizes(const Plan& plan) {
  std::vector<std::int64_t> elements;
  for (const Bucket& bucket : plan.buckets) elements.push_back(bucket.elements);
  return elements;
}

TEST(Strategy, EveryPlanCarriesEveryGradientOnceInBackwardOrder) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<std::int64_t> elements(1 + random() % 40);
    for (auto& count : elements) count = 1 + static_cast<std::int64_t>(random() % 5000);
    const auto gradients = gradients_of(elements);
    for (const Strategy& strategy : strategy_catalogue()) {
      const Thresholds thresholds{.fusion = Bytes(static_cast<double>(random() % 20000)),
                                  .hybrid = Bytes(static_cast<double>(random() % 20000)),
                                  .group_size = 2};
      const Plan plan = make_plan(strategy, gradients, 8, WireType::fp16, thresholds);
      int next = 0;
      for (const Bucket& bucket : plan.buckets) {
        EXPECT_EQ(bucket.first_gradient, next);
        std::int64_t sum = 0;
        for (int i = 0; i < bucket.gradient_count; ++i)
          sum += elements[static_cast<std::size_t>(next + i)];
        EXPECT_EQ(bucket.elements, sum);
        next += bucket.gradient_count;
        EXPECT_LT(static_cast<std::size_t>(bucket.schedule), plan.schedules.size());
      }
      EXPECT_EQ(next, static_cast<int>(elements.size()));
    }
  }
}

// A library's all-reduce is one schedule of no steps that says whose it is; buckets fuse as
// elsewhere.
TEST(Strategy, ALibraryIsPlannedWithoutSteps) {
  const auto gradients = gradients_of({4, 7, 10, 3});
  const Thresholds thresholds{.fusion = 40_B};
  const Plan plan = make_plan(strategy("nccl"), gradients, 4, WireType::fp32, thresholds);
  EXPECT_EQ(sizes(plan),
            sizes(make_plan(strategy("fused-ring"), gradients, 4, WireType::fp32, thresholds)));
  ASSERT_EQ(plan.schedules.size(), 1u);
  EXPECT_EQ(plan.schedules[0].library(), Library::nccl);
  EXPECT_EQ(plan.schedules[0].options.ranks, 4);
  EXPECT_FALSE(plan.schedules[0].has_steps());
  EXPECT_EQ(described(plan.schedules[0]), "nccl (timed by its own model)");
  const Plan ring = make_plan(strategy("ring"), gradients, 4, WireType::fp32, {});
  EXPECT_TRUE(ring.schedules[0].has_steps());
  EXPECT_EQ(described(ring.schedules[0]), "ring");
}

// What a strategy takes follows from its algorithms; a library's own all-reduce takes nothing.
TEST(Strategy, TakesWhatItsAlgorithmsTake) {
  const auto takes = [](bool (Strategy::*option)() const) {
    std::vector<std::string> names;
    for (const Strategy& strategy : strategy_catalogue())
      if ((strategy.*option)()) names.emplace_back(strategy.name);
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(takes(&Strategy::takes_group), (Names{"hierarchical", "hybrid", "multi-ring",
                                                  "hierarchical-scatter", "goyal", "torus-2d"}));
  EXPECT_EQ(takes(&Strategy::takes_segments), Names{"double-binary-tree"});
  EXPECT_EQ(takes(&Strategy::takes_rings), Names{"multi-ring"});
}

// Buckets up to eta over NCCL's trees, larger ones around its ring; alone, and under ByteScheduler.
TEST(Strategy, OfNccl24TakesTreesUpToEta) {
  const std::vector<Gradient> gradients = {{"small", 100, 0}, {"large", 100'000, 0}};
  for (const char* name : {"nccl-2.4", "byte-scheduler"}) {
    Thresholds thresholds;
    thresholds.hybrid = Bytes{400};
    const Plan plan = make_plan(strategy(name), gradients, 4, WireType::fp32, thresholds);
    ASSERT_EQ(plan.buckets.size(), 2u) << name;
    EXPECT_EQ(plan.schedules[static_cast<std::size_t>(plan.buckets[0].schedule)].algorithm,
              "double-binary-tree");
    EXPECT_EQ(plan.schedules[static_cast<std::size_t>(plan.buckets[1].schedule)].algorithm, "ring");
  }
}

// 1 MiB of FP32 gradients close DDP's first bucket, and 25 MiB each other. A wire of half the size
// changes no bucket, for DDP counts before its hook compresses.
TEST(Strategy, OfDdpHasASmallFirstBucket) {
  constexpr std::int64_t mebi = 1024 * 1024 / 4;  // elements of 1 MiB
  const std::vector<Gradient> gradients =
      gradients_of({mebi - 1, 1, 24 * mebi, mebi - 1, 2, 25 * mebi, 3});
  for (const WireType wire : {WireType::fp32, WireType::fp16}) {
    for (const char* name : {"ddp", "ddp-ring"}) {
      Thresholds thresholds;
      take_buckets_of_ddp(*strategy(name).other, wire, 1, thresholds);
      EXPECT_EQ(sizes(make_plan(strategy(name), gradients, 4, wire, thresholds)),
                (std::vector<std::int64_t>{mebi, 25 * mebi + 1, 25 * mebi, 3}));
    }
  }
  // A theta that is named is that of the first bucket, too.
  EXPECT_EQ(sizes(make_plan(strategy("ddp"), gradients, 4, WireType::fp32, {.fusion = 2_MiB})),
            (std::vector<std::int64_t>{25 * mebi, 26 * mebi + 1, 3}));
}

TEST(Strategy, OfOneBucketHasOneAfterTheBackwardPass) {
  const std::vector<Gradient> gradients = gradients_of({4, 7, 10});
  Thresholds thresholds;
  take_buckets_of_ddp(*strategy("one-bucket").other, WireType::fp32, 21, thresholds);
  const Plan plan = make_plan(strategy("one-bucket"), gradients, 4, WireType::fp32, thresholds);
  EXPECT_EQ(sizes(plan), std::vector<std::int64_t>{21});
  EXPECT_EQ(plan.overlap, Overlap::none);
}

// 40 bytes at most: 4 + 6 elements fill a bucket, and 7 do not fit beside 4.
TEST(Strategy, OfInductorLetsNoBucketPassTheta) {
  EXPECT_EQ(sizes(make_plan(strategy("inductor"), gradients_of({4, 6, 4, 7, 3, 30, 1}), 4,
                            WireType::fp32, {.fusion = 40_B})),
            (std::vector<std::int64_t>{10, 4, 10, 30, 1}));
}

// The runtime runs plans of its own kind of buckets, and makes those that need no clock.
TEST(Strategy, OfOtherSystemsThatTheRuntimeRuns) {
  std::vector<std::string> run;
  std::vector<std::string> timed;
  for (const Strategy& strategy : other_system_catalogue()) {
    if (strategy.is_runnable()) run.emplace_back(strategy.name);
    if (strategy.needs_times()) timed.emplace_back(strategy.name);
  }
  using Names = std::vector<std::string>;
  EXPECT_EQ(run, (Names{"ddp", "ddp-ring", "one-bucket", "inductor", "mg-wfbp"}));
  EXPECT_EQ(timed, (Names{"horovod", "horovod-hierarchical", "mpi-host", "byte-scheduler",
                          "inductor", "mg-wfbp"}));
  for (const Strategy& strategy : strategy_catalogue()) {
    EXPECT_TRUE(strategy.is_runnable());
    EXPECT_FALSE(strategy.needs_times());
  }
}

// A library's strategy has the library's name, so that users and plans name both by one word.
TEST(Strategy, OfALibraryHasItsName) {
  int libraries = 0;
  for (const Strategy& strategy : strategy_catalogue()) {
    if (!strategy.library()) continue;
    ++libraries;
    EXPECT_EQ(strategy.name, name(*strategy.library()));
    EXPECT_EQ(library_from_name(strategy.name), *strategy.library());
    EXPECT_TRUE(strategy.algorithms().empty());
  }
  EXPECT_EQ(libraries, 2);
  try {
    (void)library_from_name("ncll");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "unknown library 'ncll'; did you mean 'nccl'?");
  }
}

// FP32: 4 bytes each. The bucket is sent as soon as it holds 40 bytes: 4+7 = 11 elements, then 10
// by itself, then what is left.
TEST(Strategy, ABucketIsSentOnceItHoldsTheta) {
  const Plan plan = make_plan(strategy("fused-ring"), gradients_of({4, 7, 10, 3}), 4,
                              WireType::fp32, {.fusion = 40_B, .hybrid = 0_B, .group_size = 1});
  EXPECT_EQ(sizes(plan), (std::vector<std::int64_t>{11, 10, 3}));
}

TEST(Strategy, RingNeverFuses) {
  const Plan plan = make_plan(strategy("ring"), gradients_of({4, 7, 10}), 4, WireType::fp32,
                              {.fusion = 1_MiB, .hybrid = 0_B, .group_size = 1});
  EXPECT_EQ(sizes(plan), (std::vector<std::int64_t>{4, 7, 10}));
}

TEST(Strategy, HybridGoesHierarchicallyUpToEtaIncluded) {
  const Plan plan = make_plan(strategy("hybrid"), gradients_of({10, 11}), 8, WireType::fp32,
                              {.fusion = 0_B, .hybrid = 40_B, .group_size = 4});
  ASSERT_EQ(plan.buckets.size(), 2u);
  EXPECT_EQ(plan.schedules[static_cast<std::size_t>(plan.buckets[0].schedule)].algorithm,
            "hierarchical");
  EXPECT_EQ(plan.schedules[static_cast<std::size_t>(plan.buckets[0].schedule)].options.group_size,
            4);
  EXPECT_EQ(plan.schedules[static_cast<std::size_t>(plan.buckets[1].schedule)].algorithm, "ring");
}

TEST(Strategy, GroupThatDoesNotDivideIsRefused) {
  try {
    (void)make_plan(strategy("hierarchical"), gradients_of({10}), 24, WireType::fp32,
                    {.fusion = 0_B, .hybrid = 0_B, .group_size = 7});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "group size 7 does not divide 24 ranks; choose one of 1, 2, 3, 4, 6, 8, 12, 24");
  }
}

TEST(Strategy, UnknownNameSuggestsTheNearest) {
  try {
    (void)strategy("fused-rings");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "unknown strategy 'fused-rings'; did you mean 'fused-ring'?");
  }
}

}  // namespace
}  // namespace paceline::models

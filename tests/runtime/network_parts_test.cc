// The parts of runtime/network that need no network: memory plan, loss, dropout, initial weights.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "models/base/random.h"
#include "models/network/zoo.h"
#include "runtime/network/dropout.h"
#include "runtime/network/loss.h"
#include "runtime/network/memory_plan.h"
#include "runtime/network/uneven_pool.h"

namespace paceline::runtime {
namespace {

// torch.nn.functional.avg_pool1d([1, 2, 3], 2, 2, ceil_mode=True) is [1.5, 3]: what ceil adds does
// not count; padding does: avg_pool1d([1, 2, 3], 2, 2, padding=1, ceil_mode=True) is [0.5, 2.5].
TEST(UnevenPool, DividesByWhatIsInThePaddedInput) {
  const auto mean = [](const PoolExtent& extent, const std::vector<float>& input) {
    const UnevenPool pool{.in = {1, extent.in},
                          .rows = {{.first = 0, .end = 1, .count = 1}},
                          .columns = padded_windows(extent)};
    std::vector<float> output(static_cast<std::size_t>(extent.out), -1.0F);
    pool.forward(input, output);
    return output;
  };
  const std::vector<float> input{1, 2, 3};
  EXPECT_EQ(mean({.in = 3, .out = 2, .kernel = 2, .stride = 2}, input),
            (std::vector<float>{1.5F, 3}));
  EXPECT_EQ(mean({.in = 3, .out = 2, .kernel = 2, .stride = 2, .padding = 1}, input),
            (std::vector<float>{0.5F, 2.5F}));
  // Windows [-1, 2), [1, 4), and [3, 6), which ends with the padding at 5.
  EXPECT_EQ(padded_windows({.in = 4, .out = 3, .kernel = 3, .stride = 2, .padding = 1}),
            (std::vector<PoolWindow>{{.first = 0, .end = 2, .count = 3},
                                     {.first = 1, .end = 4, .count = 3},
                                     {.first = 3, .end = 4, .count = 2}}));
}

TEST(Dropout, SeedsOfNeighbouringJobsIterationsAndRanksDiffer) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t job = 0; job < 20; ++job)
    for (std::int64_t iteration = 0; iteration < 20; ++iteration)
      for (int rank = 0; rank < 20; ++rank) seeds.insert(dropout_seed(job, iteration, rank));
  EXPECT_EQ(seeds.size(), 8000U);
}

TEST(MemoryPlan, SharesPlacesOnlyOfBlocksThatNeverMeet) {
  Random random(1);
  for (int trial = 0; trial < 50; ++trial) {
    struct Use {
      std::size_t bytes = 0;
      int first = 0;
      int last = 0;
    };
    std::vector<Use> uses;
    MemoryPlan plan;
    for (int i = 0; i < 40; ++i) {
      Use use{.bytes = 1 + random.below(1000), .first = static_cast<int>(random.below(50))};
      use.last = use.first + static_cast<int>(random.below(10));
      uses.push_back(use);
      const int block = plan.add(use.bytes);
      plan.use(block, use.last);
      plan.use(block, use.first);
    }
    plan.place();
    EXPECT_LT(plan.bytes(), plan.bytes_unshared());
    for (int a = 0; a < 40; ++a) {
      const Use& one = uses[static_cast<std::size_t>(a)];
      EXPECT_EQ(plan.offset(a) % MemoryPlan::alignment, 0U);
      EXPECT_LE(plan.offset(a) + one.bytes, plan.bytes());
      for (int b = 0; b < a; ++b) {
        const Use& other = uses[static_cast<std::size_t>(b)];
        if (one.first > other.last || other.first > one.last) continue;
        EXPECT_TRUE(plan.offset(a) + one.bytes <= plan.offset(b) ||
                    plan.offset(b) + other.bytes <= plan.offset(a));
      }
    }
  }
}

TEST(MemoryPlan, PutsAChainIntoTwoBlocks) {
  MemoryPlan plan;
  for (int i = 0; i < 10; ++i) {
    const int block = plan.add(64);
    plan.use(block, i);
    plan.use(block, i + 1);
  }
  plan.place();
  EXPECT_EQ(plan.bytes(), 128U);
}

TEST(Loss, IsTheMeanOfMinusLogSoftmax) {
  const std::vector<float> logits{0, 0, 0, 1, 2, 3};
  const std::vector<std::int32_t> labels{1, 2};
  const PassOutcome outcome = SoftmaxLoss(3).outcome(logits, labels);
  const double second = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(3.0)) - 3;
  EXPECT_NEAR(outcome.loss, (std::log(3.0) + second) / 2, 1e-12);
  EXPECT_EQ(outcome.correct, 1) << "of equal logits the first counts";
  EXPECT_EQ(outcome.correct_5, 2);
}

TEST(Loss, StaysFiniteForLargeLogits) {
  const std::vector<float> logits{1e4F, -1e4F};
  EXPECT_EQ(SoftmaxLoss(2).outcome(logits, std::vector<std::int32_t>{0}).loss, 0);
  EXPECT_NEAR(SoftmaxLoss(2).outcome(logits, std::vector<std::int32_t>{1}).loss, 2e4, 1e-6);
}

TEST(Loss, TakesNanForWrong) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> logits{nan, 1, 2, 3};
  const std::vector<std::int32_t> labels{1, 1};
  const PassOutcome outcome = SoftmaxLoss(2).outcome(logits, labels);
  EXPECT_TRUE(std::isnan(outcome.loss));
  EXPECT_EQ(outcome.correct, 1);
  EXPECT_EQ(outcome.correct_5, 1);
}

TEST(Loss, CountsTheFiveLargest) {
  const std::vector<float> logits{6, 5, 4, 3, 2, 1};
  for (std::int32_t label = 0; label < 6; ++label) {
    const PassOutcome outcome = SoftmaxLoss(6).outcome(logits, std::vector{label});
    EXPECT_EQ(outcome.correct, label == 0 ? 1 : 0);
    EXPECT_EQ(outcome.correct_5, label < 5 ? 1 : 0);
  }
}

TEST(Loss, ScalesItsGradient) {
  const std::vector<float> logits{0, 0, 0, 0};
  const std::vector<std::int32_t> labels{0, 1};
  std::vector<float> gradient(4);
  SoftmaxLoss loss(2);
  static_cast<void>(loss.outcome(logits, labels));
  loss.gradient(logits, labels, 8, gradient);
  EXPECT_EQ(gradient, (std::vector<float>{-2, 2, 2, -2}));
}

TEST(Dropout, DropsItsShareAndScalesTheRest) {
  for (const double probability : {0.0, 0.2, 0.5, 1.0}) {
    std::vector<float> values(100000, 1.0F);
    drop_out({.seed = 7, .layer = 3, .probability = probability}, values, values);
    std::size_t dropped = 0;
    for (const float value : values) {
      if (value == 0)
        ++dropped;
      else
        EXPECT_FLOAT_EQ(value, static_cast<float>(1 / (1 - probability)));
    }
    // Five standard deviations of a binomial count.
    const double deviation = std::sqrt(1e5 * probability * (1 - probability));
    EXPECT_NEAR(static_cast<double>(dropped), 1e5 * probability, 5 * deviation);
  }
}

TEST(Dropout, DrawsAnotherMaskForEachSeedAndLayer) {
  const auto mask = [](std::uint64_t seed, int layer) {
    std::vector<float> values(1000, 1.0F);
    drop_out({.seed = seed, .layer = layer, .probability = 0.5}, values, values);
    return values;
  };
  EXPECT_EQ(mask(1, 2), mask(1, 2));
  EXPECT_NE(mask(1, 2), mask(2, 2));
  EXPECT_NE(mask(1, 2), mask(1, 3));
  EXPECT_NE(mask(1, 2), mask(2, 1));
}

double deviation(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

TEST(InitialWeights, FollowHeAndPyTorch) {
  const models::Network network = models::zoo_network("resnet50");
  const std::vector<float> weights = initial_weights(network, {.seed = 5});
  EXPECT_EQ(weights, initial_weights(network, {.seed = 5}));
  EXPECT_NE(weights, initial_weights(network, {.seed = 6}));
  for (const ParameterPlace& place : parameter_places(network)) {
    const auto values = std::span(weights).subspan(static_cast<std::size_t>(place.offset),
                                                   static_cast<std::size_t>(place.elements));
    if (place.name == "layer4.0.conv2.weight") {
      EXPECT_NEAR(deviation(values), std::sqrt(2.0 / (512 * 9)), 2e-4);
    } else if (place.name == "fc.weight" || place.name == "fc.bias") {
      const double bound = 1 / std::sqrt(2048.0);
      for (const float value : values) ASSERT_LE(std::abs(value), bound);
      EXPECT_NEAR(deviation(values), bound / std::sqrt(3.0), 1e-3);
    } else if (place.role == ParameterRole::gamma) {
      for (const float value : values) ASSERT_EQ(value, 1) << place.name;
    } else if (place.role == ParameterRole::beta) {
      for (const float value : values) ASSERT_EQ(value, 0) << place.name;
    }
  }
}

// The gammas of projections start at 1 (Goyal 2017, 5.1).
TEST(InitialWeights, MayEndResidualBlocksInZero) {
  const models::Network network = models::zoo_network("resnet50");
  const std::vector<float> weights = initial_weights(network, {.zero_last_gamma = true});
  int zeros = 0;
  for (const ParameterPlace& place : parameter_places(network)) {
    if (place.role != ParameterRole::gamma) continue;
    const bool is_last = place.name.ends_with(".bn3.weight");
    zeros += is_last ? 1 : 0;
    EXPECT_EQ(weights[static_cast<std::size_t>(place.offset)], is_last ? 0 : 1) << place.name;
  }
  EXPECT_EQ(zeros, 16);
}

}  // namespace
}  // namespace paceline::runtime

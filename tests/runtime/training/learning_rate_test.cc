#include "runtime/training/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace paceline::runtime {
namespace {

double rate(const std::string& name, double epoch, std::int64_t global_batch) {
  return learning_rate(shipped_recipe(name), epoch, global_batch);
}

// Goyal 2.2 and 5.1: 256 workers of 32 images; 0.1 to 3.2 in 5 epochs, a tenth at 30, 60 and 80.
TEST(LearningRate, IsGoyals) {
  EXPECT_DOUBLE_EQ(rate("goyal-2017", 0, 8192), 0.1);
  EXPECT_DOUBLE_EQ(rate("goyal-2017", 2.5, 8192), 1.65);
  EXPECT_DOUBLE_EQ(rate("goyal-2017", 5, 8192), 3.2);
  EXPECT_DOUBLE_EQ(rate("goyal-2017", 29.999, 8192), 3.2);
  EXPECT_DOUBLE_EQ(rate("goyal-2017", 30, 8192), 0.32);
  EXPECT_NEAR(rate("goyal-2017", 60, 8192), 0.032, 1e-15);
  EXPECT_NEAR(rate("goyal-2017", 89.9, 8192), 0.0032, 1e-15);
}

// Without `from` the warm-up never begins above its target.
TEST(LearningRate, OfFewSamplesIsNotWarmedDown) {
  EXPECT_DOUBLE_EQ(rate("goyal-2017", 0, 64), 0.025);
  EXPECT_DOUBLE_EQ(rate("goyal-2017", 3, 64), 0.025);
}

// Half, 0.075, 0.01 and 0.001 of 0.1 * 32768 / 256 = 12.8.
TEST(LearningRate, IsAkibasSlowStart) {
  EXPECT_DOUBLE_EQ(rate("akiba-2017", 0, 32768), 6.4);
  EXPECT_DOUBLE_EQ(rate("akiba-2017", 39.9, 32768), 6.4);
  EXPECT_NEAR(rate("akiba-2017", 40, 32768), 0.96, 1e-12);
  EXPECT_NEAR(rate("akiba-2017", 70, 32768), 0.128, 1e-12);
  EXPECT_NEAR(rate("akiba-2017", 85, 32768), 0.0128, 1e-12);
}

// 0.1 * 65536 / 256 = 25.6, then (1 - 42.5 / 85)^2 = 1 / 4 of it half way.
TEST(LearningRate, IsJizhis) {
  EXPECT_DOUBLE_EQ(rate("jizhi-resnet50", 5, 65536), 25.6);
  EXPECT_DOUBLE_EQ(rate("jizhi-resnet50", 47.5, 65536), 6.4);
  EXPECT_DOUBLE_EQ(rate("jizhi-resnet50", 90, 65536), 0);
  EXPECT_DOUBLE_EQ(rate("jizhi-resnet50", 91, 65536), 0);
  EXPECT_DOUBLE_EQ(rate("jizhi-alexnet", 5, 65536), 2.56);
}

TEST(LearningRate, IsPaisoars) {
  EXPECT_DOUBLE_EQ(rate("paisoar", 0, 1024), 0.04);
  EXPECT_DOUBLE_EQ(rate("paisoar", 5, 1024), 0.4);
  EXPECT_DOUBLE_EQ(rate("paisoar", 6.99, 1024), 0.4);
  EXPECT_DOUBLE_EQ(rate("paisoar", 7, 1024), 0.4 * 0.94);
  EXPECT_DOUBLE_EQ(rate("paisoar", 9.5, 1024), 0.4 * 0.94 * 0.94);
}

// The appendix's table: 64 images, then 128; the rate times 0.2 at 30, 0.1 at 60 and 80.
TEST(LearningRate, IsChainerMnsWithItsGrowingBatch) {
  const auto all = phases(shipped_recipe("chainermn-2018"));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].batch_per_rank, 64);
  EXPECT_EQ(all[0].epochs, 30);
  EXPECT_EQ(all[1].first_epoch, 30);
  EXPECT_EQ(all[1].epochs, 60);
  EXPECT_EQ(all[1].batch_per_rank, 128);
  const double before = rate("chainermn-2018", 29, 64 * 32);
  EXPECT_DOUBLE_EQ(before, 0.8);
  EXPECT_NEAR(rate("chainermn-2018", 30, 128 * 32), before * 0.2, 1e-15);
  EXPECT_NEAR(rate("chainermn-2018", 60, 128 * 32), before * 0.02, 1e-15);
  EXPECT_NEAR(rate("chainermn-2018", 80, 128 * 32), before * 0.002, 1e-15);
}

TEST(LearningRate, IsContinuousAtTheEndOfTheWarmUp) {
  for (const ShippedRecipe& shipped : shipped_recipes()) {
    const Recipe recipe = shipped_recipe(shipped.name);
    const double end = recipe.learning_rate.warm_up_epochs;
    if (end == 0) continue;
    const double at = learning_rate(recipe, end, 4096);
    EXPECT_NEAR(learning_rate(recipe, end - 1e-9, 4096), at, at * 1e-6) << shipped.name;
    EXPECT_NEAR(learning_rate(recipe, end + 1e-9, 4096), at, at * 1e-6) << shipped.name;
  }
}

TEST(LearningRate, RisesInTheWarmUpAndFallsAfterwards) {
  for (const ShippedRecipe& shipped : shipped_recipes()) {
    Recipe recipe = shipped_recipe(shipped.name);
    recipe.learning_rate.increase_batch_instead = false;
    double last = 0;
    for (double epoch = 0; epoch < recipe.epochs; epoch += 0.01) {
      const double now = learning_rate(recipe, epoch, 8192);
      const bool warms_up = epoch < recipe.learning_rate.warm_up_epochs;
      if (epoch > 0) {
        EXPECT_TRUE(warms_up ? now >= last
                             : now <= last || epoch - 0.01 < recipe.learning_rate.warm_up_epochs)
            << shipped.name << " at " << epoch;
      }
      EXPECT_GT(now, 0);
      last = now;
    }
  }
}

// Smith 2017: a batch that grows has the rate / batch of a rate that decays, whatever the cap.
TEST(LearningRate, OverTheBatchIsTheSameWhenTheBatchGrows) {
  for (const bool linear : {false, true}) {
    for (const int largest : {32, 48, 64, 320, 3200, 100000}) {
      Recipe grows = shipped_recipe("goyal-2017");
      grows.learning_rate.linear_scaling = linear;
      Recipe decays = grows;
      grows.learning_rate.increase_batch_instead = true;
      grows.learning_rate.largest_batch_per_rank = largest;
      for (const Phase& phase : phases(grows)) {
        for (std::int64_t epoch = phase.first_epoch; epoch < phase.first_epoch + phase.epochs;
             ++epoch) {
          const auto at = static_cast<double>(epoch);
          const double ours =
              learning_rate(grows, at, phase.batch_per_rank * 8) / phase.batch_per_rank;
          const double theirs = learning_rate(decays, at, 32 * 8) / 32;
          EXPECT_NEAR(ours, theirs, theirs * 1e-12) << epoch << " with " << largest;
        }
      }
    }
  }
}

TEST(Phases, GrowByOneOverTheFactorUpToTheLargest) {
  Recipe recipe = shipped_recipe("goyal-2017");
  recipe.learning_rate.increase_batch_instead = true;
  recipe.learning_rate.largest_batch_per_rank = 4000;
  const auto all = phases(recipe);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[1].batch_per_rank, 320);
  EXPECT_EQ(all[2].batch_per_rank, 3200);
  EXPECT_EQ(all[3].batch_per_rank, 4000);
  EXPECT_EQ(all[3].first_epoch, 80);
  EXPECT_EQ(all[3].epochs, 10);
}

TEST(Phases, CoverATrainingThatEndsEarly) {
  Recipe recipe = shipped_recipe("smith-2017");
  recipe.epochs = 29.5;
  ASSERT_EQ(phases(recipe).size(), 1u);
  EXPECT_EQ(phases(recipe)[0].epochs, 30);
  recipe.epochs = 30.5;
  ASSERT_EQ(phases(recipe).size(), 2u);
  EXPECT_EQ(phases(recipe)[1].epochs, 1);
}

TEST(LearningRate, FallsAsACosineAfterTheWarmUp) {
  Recipe recipe;
  recipe.epochs = 5;
  recipe.learning_rate = {.base = 0.2,
                          .linear_scaling = false,
                          .warm_up_epochs = 1,
                          .warm_up_from = 0.5,
                          .decay = DecayKind::cosine,
                          .cosine_to = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(recipe, 0, 32), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(recipe, 1, 32), 0.2);
  EXPECT_NEAR(learning_rate(recipe, 2, 32), 0.2 * (0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2), 1e-12);
  EXPECT_NEAR(learning_rate(recipe, 3, 32), 0.2 * 0.55, 1e-12);
  EXPECT_NEAR(learning_rate(recipe, 5, 32), 0.02, 1e-12);
}

TEST(LearningRate, OfATrainingShorterThanItsWarmUpKeepsRising) {
  Recipe recipe = shipped_recipe("jizhi-resnet50");
  recipe.epochs = 2;
  EXPECT_LT(learning_rate(recipe, 1, 65536), learning_rate(recipe, 1.9, 65536));
}

}  // namespace
}  // namespace paceline::runtime

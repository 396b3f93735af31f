#include "runtime/training/loss_scale.h"

#include <gtest/gtest.h>

namespace paceline::runtime {
namespace {

using models::NumberType;

LossScaleState dynamic_state() {
  return initial_loss_scale({}, NumberType::fp16, NumberType::fp16);
}

TEST(LossScale, GrowsAfterAnIntervalOfGoodSteps) {
  const LossScaleRecipe recipe{.growth_interval = 3};
  LossScaleState state = dynamic_state();
  for (int i = 0; i < 2; ++i) after_step(recipe, false, state);
  EXPECT_EQ(state, (LossScaleState{.scale = 65536, .good_steps = 2}));
  after_step(recipe, false, state);
  EXPECT_EQ(state, (LossScaleState{.scale = 131072, .good_steps = 0}));
}

TEST(LossScale, FallsAtAnOverflowWhichAlsoEndsTheRunOfGoodSteps) {
  const LossScaleRecipe recipe{.growth_interval = 3};
  LossScaleState state = dynamic_state();
  for (int i = 0; i < 2; ++i) after_step(recipe, false, state);
  after_step(recipe, true, state);
  EXPECT_EQ(state, (LossScaleState{.scale = 32768, .good_steps = 0, .skipped = 1}));
  for (int i = 0; i < 2; ++i) after_step(recipe, false, state);
  EXPECT_EQ(state.scale, 32768);
}

TEST(LossScale, StaysWithinItsBounds) {
  const LossScaleRecipe recipe{.growth_interval = 1};
  LossScaleState state = dynamic_state();
  for (int i = 0; i < 100; ++i) after_step(recipe, false, state);
  EXPECT_EQ(state.scale, 1 << 24);
  for (int i = 0; i < 100; ++i) after_step(recipe, true, state);
  EXPECT_EQ(state.scale, 1);
  EXPECT_EQ(state.skipped, 100);
}

TEST(LossScale, ThatIsStaticStaysAndCounts) {
  const LossScaleRecipe recipe{.dynamic = false, .initial = 1024, .growth_interval = 1};
  for (const NumberType type : {NumberType::fp32, NumberType::fp16, NumberType::bf16}) {
    LossScaleState state = initial_loss_scale(recipe, type, NumberType::fp32);
    after_step(recipe, false, state);
    after_step(recipe, true, state);
    EXPECT_EQ(state.scale, 1024);
    EXPECT_EQ(state.skipped, 1);
  }
}

TEST(LossScale, IsOneWhereNothingIsFp16) {
  const LossScaleRecipe recipe{.growth_interval = 1};
  for (const NumberType type : {NumberType::fp32, NumberType::bf16}) {
    LossScaleState state = initial_loss_scale(recipe, type, NumberType::bf16);
    for (int i = 0; i < 10; ++i) after_step(recipe, false, state);
    EXPECT_EQ(state.scale, 1);
    after_step(recipe, true, state);
    EXPECT_EQ(state.scale, 1);
    EXPECT_EQ(state.skipped, 1);
  }
  EXPECT_EQ(initial_loss_scale(recipe, NumberType::fp32, NumberType::fp16).scale, 65536);
}

}  // namespace
}  // namespace paceline::runtime

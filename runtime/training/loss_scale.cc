// Tests: tests/runtime/training/loss_scale_test.cc.
#include "runtime/training/loss_scale.h"

#include <algorithm>

namespace paceline::runtime {
namespace {

constexpr double least_scale = 1;
constexpr double largest_scale = 1 << 24;

}  // namespace

LossScaleState initial_loss_scale(const LossScaleRecipe& recipe, models::NumberType storage,
                                  models::WireType wire) {
  const bool is_narrow = storage == models::NumberType::fp16 || wire == models::NumberType::fp16;
  if (!recipe.dynamic) return {.scale = recipe.initial, .fixed = true};
  if (!is_narrow) return {.scale = 1, .fixed = true};
  return {.scale = std::clamp(recipe.initial, least_scale, largest_scale)};
}

void after_step(const LossScaleRecipe& recipe, bool overflow, LossScaleState& state) {
  const bool moves = recipe.dynamic && !state.fixed;
  if (overflow) {
    ++state.skipped;
    state.good_steps = 0;
    if (moves) state.scale = std::max(least_scale, state.scale * recipe.backoff);
    return;
  }
  ++state.good_steps;
  if (!moves || state.good_steps < recipe.growth_interval) return;
  state.scale = std::min(largest_scale, state.scale * recipe.growth);
  state.good_steps = 0;
}

}  // namespace paceline::runtime

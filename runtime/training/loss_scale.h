// Loss scaling (Micikevicius 2017, 3.2): gradients are those of scale * loss, so that small ones
// survive FP16; a step whose gradients overflowed is skipped and counted.
#pragma once

#include <cstdint>

#include "runtime/training/recipe.h"

namespace paceline::runtime {

struct LossScaleState {
  double scale = 1;
  std::int64_t good_steps = 0;  // since the last overflow or growth
  std::int64_t skipped = 0;     // steps, in all
  bool fixed = false;           // after_step() only counts
  bool operator==(const LossScaleState&) const = default;
};

// FP32 and BF16 start at scale 1 and stay there, unless the recipe's is static; so scales are those
// of the recipe where storage or wire is FP16.
[[nodiscard]] LossScaleState initial_loss_scale(const LossScaleRecipe& recipe,
                                                models::NumberType storage, models::WireType wire);
// Counts a step. A dynamic scale is multiplied by backoff after an overflow, and by growth after
// growth_interval steps in a row without one. It stays within [1, 2^24].
void after_step(const LossScaleRecipe& recipe, bool overflow, LossScaleState& state);

}  // namespace paceline::runtime

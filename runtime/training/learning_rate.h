// The learning rate and the batch size of each iteration, as a function of the recipe.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/training/recipe.h"

namespace paceline::runtime {

// A stretch of whole epochs with one batch size.
struct Phase {
  std::int64_t first_epoch = 0;
  std::int64_t epochs = 0;
  int batch_per_rank = 1;
};

// One phase, or more where the recipe increases the batch (Smith 2017). The last may end early,
// where recipe.epochs is no whole number.
[[nodiscard]] std::vector<Phase> phases(const Recipe& recipe);

// The rate at `epoch` (a fraction counts: 2.5 is half way through the third) with this global
// batch.
[[nodiscard]] double learning_rate(const Recipe& recipe, double epoch, std::int64_t global_batch);

}  // namespace paceline::runtime

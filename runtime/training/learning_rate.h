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

// The phases of a recipe. There is one, unless the recipe increases the batch (Smith 2017, section
// 5): at each step the batch is the first one times 1 / factor of all steps so far, rounded, up to
// the largest. The last phase may end early, where recipe.epochs is no whole number.
[[nodiscard]] std::vector<Phase> phases(const Recipe& recipe);

// The rate at `epoch` (a fraction counts: 2.5 is half way through the third), `global_batch` being
// the global batch of that epoch's phase:
//
//   target    base * global batch / base batch (Goyal 2.1); without linear scaling, base * batch of
//             the phase / first batch
//   warm-up   t < w: start + (target - start) * t / w (Goyal 2.2), start = from * target, or where
//             the recipe has no `from` the base, if that is smaller than the target
//   decay     t >= w: target times
//             step         the factors of all steps up to t
//             polynomial   (1 - (t - w) / (T - w)) ^ power
//             cosine       to + (1 - to) (1 + cos(pi (t - w) / (T - w))) / 2 (Loshchilov 2016)
//             exponential  factor ^ floor((t - w) / epochs). PAISoar 3.2 describes it in words: it
//                          rises smoothly from a small rate to the target, then "decays once every
//                          few epochs". The straight line and the stairs are our reading.
[[nodiscard]] double learning_rate(const Recipe& recipe, double epoch, std::int64_t global_batch);

}  // namespace paceline::runtime

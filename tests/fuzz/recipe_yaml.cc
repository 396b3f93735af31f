// Any bytes as a recipe: one with finite, positive rates in every epoch, or an InputError.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "models/base/error.h"
#include "runtime/training/learning_rate.h"
#include "runtime/training/recipe.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
  try {
    const runtime::Recipe recipe =
        runtime::parse_recipe({reinterpret_cast<const char*>(data), size}, "recipe.yaml");
    std::int64_t next = 0;
    for (const runtime::Phase& phase : runtime::phases(recipe)) {
      PACELINE_ASSERT(phase.first_epoch == next && phase.epochs > 0, "phases follow one another");
      PACELINE_ASSERT(phase.batch_per_rank >= recipe.batch_per_rank, "batches only grow");
      next += phase.epochs;
      const auto epoch = std::min(static_cast<double>(phase.first_epoch) + 0.5, recipe.epochs);
      const double rate =
          runtime::learning_rate(recipe, epoch, 8 * std::int64_t{phase.batch_per_rank});
      PACELINE_ASSERT(std::isfinite(rate) && rate >= 0, "a rate is a number");
    }
    PACELINE_ASSERT(static_cast<double>(next) >= recipe.epochs, "phases cover the training");
  } catch (const InputError&) {
  }
  return 0;
}

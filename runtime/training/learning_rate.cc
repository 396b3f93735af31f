// Tests: tests/runtime/training/learning_rate_test.cc.
#include "runtime/training/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "models/base/error.h"

namespace paceline::runtime {
namespace {

double step_factor(const LearningRateRecipe& rate, std::size_t step) {
  return rate.step_factors.empty() ? rate.step_factor : rate.step_factors.at(step);
}

// The factors of all steps up to `epoch`, multiplied.
double decay_by_steps(const LearningRateRecipe& rate, double epoch) {
  double decay = 1;
  for (std::size_t i = 0; i < rate.step_epochs.size(); ++i)
    if (epoch >= rate.step_epochs[i]) decay *= step_factor(rate, i);
  return decay;
}

double decay_at(const Recipe& recipe, double epoch) {
  const LearningRateRecipe& rate = recipe.learning_rate;
  const double since_warm_up = epoch - rate.warm_up_epochs;
  const double length = recipe.epochs - rate.warm_up_epochs;
  switch (rate.decay) {
    case DecayKind::constant:
      return 1;
    case DecayKind::step:
      return decay_by_steps(rate, epoch);
    case DecayKind::polynomial:
      if (length <= 0) return 1;
      return std::pow(std::max(0.0, 1 - since_warm_up / length), rate.polynomial_power);
    case DecayKind::smooth_exponential:
      return std::pow(rate.exponential_factor, std::floor(since_warm_up / rate.exponential_epochs));
    case DecayKind::cosine: {
      if (length <= 0) return 1;
      const double share = std::min(1.0, since_warm_up / length);
      return rate.cosine_to + (1 - rate.cosine_to) * (1 + std::cos(std::numbers::pi * share)) / 2;
    }
  }
  return 1;
}

int batch_at(const Recipe& recipe, double epoch) {
  const LearningRateRecipe& rate = recipe.learning_rate;
  if (!rate.increase_batch_instead) return recipe.batch_per_rank;
  const double grown = recipe.batch_per_rank / decay_by_steps(rate, epoch);
  const int largest = std::max(rate.largest_batch_per_rank, recipe.batch_per_rank);
  return grown >= largest ? largest : static_cast<int>(std::lround(grown));
}

// The rate before decay, for the batch size of `epoch`.
double target_at(const Recipe& recipe, double epoch, std::int64_t global_batch) {
  const LearningRateRecipe& rate = recipe.learning_rate;
  if (rate.linear_scaling)
    return rate.base * static_cast<double>(global_batch) / static_cast<double>(rate.base_batch);
  return rate.base * batch_at(recipe, epoch) / recipe.batch_per_rank;
}

}  // namespace

std::vector<Phase> phases(const Recipe& recipe) {
  const auto epochs = static_cast<std::int64_t>(std::ceil(recipe.epochs));
  std::vector<Phase> all = {{0, epochs, recipe.batch_per_rank}};
  if (!recipe.learning_rate.increase_batch_instead) return all;
  for (const double step : recipe.learning_rate.step_epochs) {
    PACELINE_ASSERT(step == std::floor(step), "a batch grows between epochs");
    const auto first = static_cast<std::int64_t>(step);
    const int batch = batch_at(recipe, step);
    if (first >= epochs || batch == all.back().batch_per_rank) continue;
    all.back().epochs = first - all.back().first_epoch;
    all.push_back({first, epochs - first, batch});
  }
  return all;
}

double learning_rate(const Recipe& recipe, double epoch, std::int64_t global_batch) {
  const LearningRateRecipe& rate = recipe.learning_rate;
  const double target = target_at(recipe, epoch, global_batch);
  if (epoch >= rate.warm_up_epochs) return target * decay_at(recipe, epoch);
  const double start =
      rate.warm_up_from > 0 ? rate.warm_up_from * target : std::min(rate.base, target);
  return start + (target - start) * epoch / rate.warm_up_epochs;
}

}  // namespace paceline::runtime

// Tests: tests/runtime/loop/trainer_test.cc.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/training/trainer.h"

namespace paceline::runtime {
namespace {

std::string optimizer_lines(const OptimizerRecipe& o) {
  return fmt::format(
      "optimizer: {}, momentum {}{}, decay {}{}{}\nlars: {}\nrmsprop warm-up: centre {}, period "
      "{}\n",
      o.kind == OptimizerKind::momentum_sgd ? "momentum SGD" : "RMSprop warm-up", o.momentum,
      o.nesterov ? " (Nesterov)" : "", o.weight_decay, o.decay_bias ? " with bias" : "",
      o.decay_batch_norm ? " with batch norm" : "",
      o.lars.enabled ? fmt::format("trust {}, epsilon {}", o.lars.trust_coefficient, o.lars.epsilon)
                     : "none",
      o.rmsprop_centre_epoch, o.rmsprop_period_epochs);
}

std::string rate_lines(const LearningRateRecipe& r) {
  return fmt::format(
      "learning rate: {} for {}{}, warm-up {} epochs from {}\n"
      "decay: kind {}, at {} by {}, power {}, {} every {} epochs\n"
      "batch increase: {} up to {}\n",
      r.base, r.base_batch, r.linear_scaling ? " scaled" : "", r.warm_up_epochs, r.warm_up_from,
      static_cast<int>(r.decay), fmt::join(r.step_epochs, " "), r.step_factor, r.polynomial_power,
      r.exponential_factor, r.exponential_epochs, r.increase_batch_instead,
      r.largest_batch_per_rank);
}

std::string plan_lines(const models::Plan& plan) {
  std::string text = fmt::format("strategy: {}\nwire: {}\noverlap: {}\nstreams: {}\n",
                                 plan.strategy, name(plan.wire), name(plan.overlap), plan.streams);
  for (std::size_t i = 0; i < plan.schedules.size(); ++i)
    text += fmt::format("schedule {}: {}\n", i, models::described(plan.schedules[i]));
  std::vector<std::string> buckets;
  for (const models::Bucket& bucket : plan.buckets)
    buckets.push_back(fmt::format("{}@{}", bucket.gradient_count, bucket.schedule));
  text += fmt::format("buckets: {}\n", fmt::join(buckets, " "));
  return text;
}

}  // namespace

std::string job_description(const TrainingRequest& request, int ranks) {
  const Recipe& recipe = request.recipe;
  const bool mixed = recipe.precision == models::Precision::mixed;
  std::int64_t parameters = 0;
  for (const ParameterPlace& place : parameter_places(request.network))
    parameters += place.elements;
  return fmt::format("model: {}, {} parameters\n", request.network.name(), parameters) +
         fmt::format("data: {}, {} samples\n", request.dataset.name(),
                     request.dataset.size(Part::training)) +
         fmt::format("ranks: {}\nbatch: {}\nepochs: {}\nseed: {}\nprecision: {}\n", ranks,
                     recipe.batch_per_rank, recipe.epochs, recipe.seed,
                     mixed ? name(recipe.storage) : "fp32") +
         optimizer_lines(recipe.optimizer) + rate_lines(recipe.learning_rate) +
         fmt::format("loss scale: {} {}, growth {} every {}, backoff {}\n",
                     recipe.loss_scale.dynamic ? "dynamic" : "static", recipe.loss_scale.initial,
                     recipe.loss_scale.growth, recipe.loss_scale.growth_interval,
                     recipe.loss_scale.backoff) +
         fmt::format("augmentation: crop {}, flip {}, resized crop {}\nzero last gamma: {}\n",
                     recipe.augmentation.crop_padding, recipe.augmentation.flip,
                     recipe.augmentation.random_resized_crop, recipe.zero_last_gamma) +
         plan_lines(request.plan);
}

}  // namespace paceline::runtime

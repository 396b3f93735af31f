// A recipe: how a network is trained, apart from how its gradients travel (that is the plan) and
// from which images it sees. One YAML file; docs/formats.md describes it, and the papers' recipes
// are shipped (runtime/training/recipes).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/precision.h"

namespace paceline::runtime {

enum class OptimizerKind {
  momentum_sgd,
  rmsprop_warm_up,  // from RMSprop to momentum SGD (Akiba 2017)
  adam,             // Kingma 2014, with the weight decay in the gradients
  adamw,            // with the weight decay beside them (Loshchilov 2017)
};

struct Lars {  // You 2017, equation 6; Jizhi 4.1
  bool enabled = false;
  double trust_coefficient = 0.001;
  double epsilon = 0;
  // Whether biases, and gamma and beta, take a rate of their own, too. Jizhi and You do not say;
  // the default is ours: a parameter that starts at 0 has a norm near 0 after its first step, and
  // a rate in proportion to it would keep it there.
  bool bias = false;
  bool batch_norm = false;
};

struct OptimizerRecipe {
  OptimizerKind kind = OptimizerKind::momentum_sgd;
  double momentum = 0.9;
  bool nesterov = false;
  // Scales the momentum by the ratio of the rates when the rate changes. Steps are then those of
  // u = momentum u + g, w = w - rate u, as PyTorch's (Goyal 2017, section 3, equations 9 and 10).
  bool momentum_correction = false;
  double weight_decay = 1e-4;
  // Jizhi 4.2: no decay on bias, beta and gamma, unless the recipe says so.
  bool decay_bias = false;
  bool decay_batch_norm = false;
  Lars lars = {};
  // Akiba's transition from RMSprop to SGD; epochs. sgd_share() in optimizer.h has the formula.
  double rmsprop_centre_epoch = 10;
  double rmsprop_period_epochs = 5;
  double rmsprop_rate = 3e-4;   // of the RMSprop part, whatever the learning rate is
  double rmsprop_decay = 0.99;  // of the mean square of the gradients
  double rmsprop_epsilon = 1e-8;
  // These two belong to Adam and AdamW, for which `momentum` is the decay of the means.
  double square_decay = 0.999;
  double adam_epsilon = 1e-8;
  // The gradients of all parameters are scaled down to this norm where theirs is larger (Pascanu 2013); 0: never.
  double clip_norm = 0;

  [[nodiscard]] bool is_adam() const {
    return kind == OptimizerKind::adam || kind == OptimizerKind::adamw;
  }
};

enum class DecayKind { constant, step, polynomial, smooth_exponential, cosine };

// The learning rate, by epoch (a fraction of one counts).
struct LearningRateRecipe {
  // The rate for a global batch of base_batch samples. With linear scaling the rate is
  // base * global batch / base_batch (Goyal 2.1).
  double base = 0.1;
  std::int64_t base_batch = 256;
  bool linear_scaling = true;
  double warm_up_epochs = 0;  // gradual, from warm_up_from (Goyal 2.2)
  // The first rate, as a share of the target; 0 starts at base, the rate of one worker (Goyal 2.2).
  double warm_up_from = 0;
  DecayKind decay = DecayKind::step;
  std::vector<double> step_epochs = {};  // step: multiply by step_factor at each
  double step_factor = 0.1;
  std::vector<double> step_factors = {};  // one for each of step_epochs; empty: step_factor at each
  // polynomial: (1 - t / T) ^ power; t and T count from the end of the warm-up.
  double polynomial_power = 2;
  // smooth exponential (PAISoar 3.2): after the warm-up, factor once every this many epochs.
  double exponential_epochs = 2;
  double exponential_factor = 0.94;
  double cosine_to = 0;  // the last rate, as a share of the target
  // Smith 2017: at each of step_epochs the batch grows by 1 / step_factor instead, up to a largest
  // batch per rank; beyond it the rate decays. So rate / batch is that of the decay in any case.
  bool increase_batch_instead = false;
  int largest_batch_per_rank = 1024;
};

struct LossScaleRecipe {
  bool dynamic = true;
  double initial = 65536;  // or the static scale; 2^16
  double growth = 2;
  double backoff = 0.5;
  int growth_interval = 2000;  // steps without overflow before it grows
};

struct AugmentationRecipe {
  int crop_padding = 0;
  bool flip = false;
  bool random_resized_crop = false;
};

struct Recipe {
  std::string name;
  std::string source;  // paper and section
  double epochs = 1;
  int batch_per_rank = 32;
  std::uint64_t seed = 1;
  models::Precision precision = models::Precision::fp32;
  // The type of activations and working weights where precision is mixed.
  models::NumberType storage = models::NumberType::bf16;
  OptimizerRecipe optimizer = {};
  LearningRateRecipe learning_rate = {};
  LossScaleRecipe loss_scale = {};
  AugmentationRecipe augmentation = {};
  bool zero_last_gamma = false;  // Goyal 5.1

  // The type of activations and working weights.
  [[nodiscard]] models::NumberType working_type() const {
    return precision == models::Precision::mixed ? storage : models::NumberType::fp32;
  }
};

// Throws InputError with file, line and what would be right. Keys that are not there keep their
// defaults.
[[nodiscard]] Recipe parse_recipe(std::string_view yaml, const std::string& file);

struct ShippedRecipe {
  std::string_view name;
  std::string_view yaml;
};
[[nodiscard]] std::span<const ShippedRecipe> shipped_recipes();
// Throws InputError that suggests the nearest name.
[[nodiscard]] Recipe shipped_recipe(std::string_view name);

// The recipe of `paceline train` where --recipe is not given, and that of networks that read tokens.
inline constexpr std::string_view default_recipe = "fashion-mnist";
inline constexpr std::string_view default_text_recipe = "text-tiny";

}  // namespace paceline::runtime

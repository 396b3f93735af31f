// Tests: tests/runtime/training/optimizer_test.cc.
#include "runtime/training/optimizer.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "models/base/error.h"
#include "runtime/training/optimizer_kernels.h"

namespace paceline::runtime {
namespace {

// 64 KiB of each array. A part of the results: norms are sums of the blocks' sums.
constexpr std::size_t block_elements = 16384;
// Below this, starting another thread takes longer than its share of the work.
constexpr std::size_t least_elements_per_thread = 1 << 18;

std::size_t flat_size(const std::vector<ParameterPlace>& parameters) {
  std::int64_t end = 0;
  for (const ParameterPlace& p : parameters) end = std::max(end, p.offset + p.elements);
  return static_cast<std::size_t>(end);
}

bool is_batch_norm(const ParameterPlace& parameter) {
  return parameter.role == ParameterRole::gamma || parameter.role == ParameterRole::beta;
}

}  // namespace

double sgd_share(const OptimizerRecipe& recipe, double epoch) {
  const double since_centre = (epoch - recipe.rmsprop_centre_epoch) / recipe.rmsprop_period_epochs;
  if (since_centre < 0) return std::exp(2 * since_centre) / 2;
  return since_centre < 0.5 ? 0.5 + since_centre : 1;
}

Optimizer::Optimizer(const OptimizerRecipe& recipe, std::vector<ParameterPlace> parameters,
                     int threads)
    : recipe_(recipe),
      parameters_(std::move(parameters)),
      momentum_(flat_size(parameters_)),
      threads_(threads) {
  PACELINE_ASSERT(threads >= 1, "somebody works");
  if (recipe_.kind == OptimizerKind::rmsprop_warm_up) mean_square_.resize(momentum_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto first = static_cast<std::size_t>(parameters_[i].offset);
    const auto end = first + static_cast<std::size_t>(parameters_[i].elements);
    for (std::size_t at = first; at < end; at += block_elements)
      blocks_.push_back({i, at, std::min(block_elements, end - at)});
  }
}

bool Optimizer::decays(const ParameterPlace& parameter) const {
  if (parameter.role == ParameterRole::bias) return recipe_.decay_bias;
  return !is_batch_norm(parameter) || recipe_.decay_batch_norm;
}

bool Optimizer::has_own_rate(const ParameterPlace& parameter) const {
  if (!recipe_.lars.enabled) return false;
  if (parameter.role == ParameterRole::bias) return recipe_.lars.bias;
  return !is_batch_norm(parameter) || recipe_.lars.batch_norm;
}

template <class Action>
void Optimizer::on_blocks(Action action) const {
  const std::size_t most = std::max<std::size_t>(1, momentum_.size() / least_elements_per_thread);
  const std::size_t pieces = std::min(static_cast<std::size_t>(threads_), most);
  const auto piece = [&](std::size_t i) {
    action(blocks_.size() * i / pieces, blocks_.size() * (i + 1) / pieces);
  };
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < pieces; ++i) helpers.emplace_back(piece, i);
  piece(0);
}

std::vector<Optimizer::Factors> Optimizer::factors(std::span<const float> weights,
                                                   std::span<const float> gradients,
                                                   float gradient_factor,
                                                   double learning_rate) const {
  std::vector<Factors> all(parameters_.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].rate = static_cast<float>(learning_rate);
    all[i].decay = decays(parameters_[i]) ? static_cast<float>(recipe_.weight_decay) : 0.0F;
  }
  if (!recipe_.lars.enabled) return all;

  std::vector<SquareSums> sums(blocks_.size());
  on_blocks([&](std::size_t first, std::size_t last) {
    for (std::size_t b = first; b < last; ++b) {
      const Block& block = blocks_[b];
      if (!has_own_rate(parameters_[block.parameter])) continue;
      sums[b] = square_sums(weights.data() + block.offset, gradients.data() + block.offset,
                            block.elements);
    }
  });
  std::vector<SquareSums> totals(parameters_.size());
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    totals[blocks_[b].parameter].weights += sums[b].weights;
    totals[blocks_[b].parameter].gradients += sums[b].gradients;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double weight_norm = std::sqrt(totals[i].weights);
    const double gradient_norm =
        std::sqrt(totals[i].gradients) * std::abs(static_cast<double>(gradient_factor));
    if (weight_norm == 0 || gradient_norm == 0) continue;
    const double decay = static_cast<double>(all[i].decay);
    const double own = recipe_.lars.trust_coefficient * weight_norm /
                       (gradient_norm + decay * weight_norm + recipe_.lars.epsilon);
    all[i].rate = static_cast<float>(learning_rate * own);
  }
  return all;
}

float Optimizer::momentum_factor(double learning_rate) {
  const auto momentum = static_cast<float>(recipe_.momentum);
  if (!recipe_.momentum_correction) return momentum;
  const auto rate = static_cast<float>(learning_rate);
  const bool has_changed = last_rate_ > 0 && rate > 0 && rate != last_rate_;
  const float factor = has_changed ? momentum * (rate / last_rate_) : momentum;
  if (rate > 0) last_rate_ = rate;
  return factor;
}

void Optimizer::step(std::span<float> weights, std::span<const float> gradients,
                     float gradient_factor, double learning_rate, double epoch) {
  PACELINE_ASSERT(weights.size() == momentum_.size() && gradients.size() == momentum_.size(),
                  "the arrays are those of the parameters");
  const std::vector<Factors> all = factors(weights, gradients, gradient_factor, learning_rate);
  const float momentum = momentum_factor(learning_rate);
  const double share =
      recipe_.kind == OptimizerKind::rmsprop_warm_up ? sgd_share(recipe_, epoch) : 1;

  on_blocks([&](std::size_t first, std::size_t last) {
    for (std::size_t b = first; b < last; ++b) {
      const Block& block = blocks_[b];
      const Factors& f = all[block.parameter];
      float* w = weights.data() + block.offset;
      const float* g = gradients.data() + block.offset;
      float* v = momentum_.data() + block.offset;
      if (recipe_.kind == OptimizerKind::momentum_sgd) {
        sgd_step({gradient_factor, f.decay, momentum, f.rate, recipe_.nesterov}, w, g, v,
                 block.elements);
        continue;
      }
      rmsprop_step({.gradient_factor = gradient_factor,
                    .decay = f.decay,
                    .momentum = momentum,
                    .sgd_rate = static_cast<float>(learning_rate * share),
                    .rmsprop_rate = static_cast<float>(recipe_.rmsprop_rate * (1 - share)),
                    .square_decay = static_cast<float>(recipe_.rmsprop_decay),
                    .epsilon = static_cast<float>(recipe_.rmsprop_epsilon)},
                   w, g, v, mean_square_.data() + block.offset, block.elements);
    }
  });
}

std::vector<Optimizer::State> Optimizer::state() {
  std::vector<State> all = {{"momentum", momentum_}};
  if (!mean_square_.empty()) all.push_back({"mean_square", mean_square_});
  if (recipe_.momentum_correction) all.push_back({"learning_rate", {&last_rate_, 1}});
  return all;
}

}  // namespace paceline::runtime

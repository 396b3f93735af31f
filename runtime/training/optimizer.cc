// Tests: tests/runtime/training/optimizer_test.cc.
#include "runtime/training/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
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
    : recipe_(recipe), parameters_(std::move(parameters)), momentum_(flat_size(parameters_)) {
  PACELINE_ASSERT(threads >= 1, "somebody works");
  if (recipe_.kind == OptimizerKind::rmsprop_warm_up) mean_square_.resize(momentum_.size());
  const std::size_t most = std::max<std::size_t>(1, momentum_.size() / least_elements_per_thread);
  workers_ = std::min(static_cast<std::size_t>(threads), most);
  cut();
}

// With LARS a parameter belongs to one worker, who finds it in the cache again after its norms: the
// largest first, each to the worker with the least so far. One that is more than half of a worker's
// part is shared, as all are without LARS.
void Optimizer::cut() {
  std::vector<std::size_t> order(parameters_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  own_.resize(workers_);
  std::vector<std::size_t> load(workers_);
  if (recipe_.lars.enabled) {
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return parameters_[a].elements > parameters_[b].elements;
    });
  }
  for (const std::size_t parameter : order) {
    const auto elements = static_cast<std::size_t>(parameters_[parameter].elements);
    const bool is_large = workers_ > 1 && elements > momentum_.size() / workers_ / 2;
    if (!recipe_.lars.enabled || is_large) {
      add_blocks(parameter, shared_);
      continue;
    }
    const auto worker =
        static_cast<std::size_t>(std::min_element(load.begin(), load.end()) - load.begin());
    load[worker] += elements;
    add_blocks(parameter, own_[worker].emplace_back());
  }
}

void Optimizer::add_blocks(std::size_t parameter, std::vector<Block>& blocks) const {
  const auto first = static_cast<std::size_t>(parameters_[parameter].offset);
  const auto elements = static_cast<std::size_t>(parameters_[parameter].elements);
  for (std::size_t at = 0; at < elements; at += block_elements)
    blocks.push_back({parameter, first + at, std::min(block_elements, elements - at)});
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
void Optimizer::on_workers(Action action) const {
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < workers_; ++i) helpers.emplace_back(action, i);
  action(0);
}

void Optimizer::set_own_rates(std::span<const Block> blocks, bool threads, Step& step) const {
  std::vector<SquareSums> sums(blocks.size());
  const auto add = [&](std::size_t first, std::size_t last) {
    for (std::size_t b = first; b < last; ++b) {
      if (!has_own_rate(parameters_[blocks[b].parameter])) continue;
      sums[b] = square_sums(step.weights.data() + blocks[b].offset,
                            step.gradients.data() + blocks[b].offset, blocks[b].elements);
    }
  };
  if (threads)
    on_workers([&](std::size_t i) {
      add(blocks.size() * i / workers_, blocks.size() * (i + 1) / workers_);
    });
  else
    add(0, blocks.size());

  for (std::size_t b = 0; b < blocks.size();) {
    const std::size_t parameter = blocks[b].parameter;
    SquareSums total;
    for (; b < blocks.size() && blocks[b].parameter == parameter; ++b) {
      total.weights += sums[b].weights;
      total.gradients += sums[b].gradients;
    }
    const double weight_norm = std::sqrt(total.weights);
    const double gradient_norm =
        std::sqrt(total.gradients) * std::abs(static_cast<double>(step.gradient_factor));
    if (weight_norm == 0 || gradient_norm == 0) continue;
    Factors& factors = step.factors[parameter];
    const double own =
        recipe_.lars.trust_coefficient * weight_norm /
        (gradient_norm + static_cast<double>(factors.decay) * weight_norm + recipe_.lars.epsilon);
    factors.rate = static_cast<float>(step.learning_rate * own);
  }
}

void Optimizer::update(std::span<const Block> blocks, const Step& step) {
  for (const Block& block : blocks) {
    const Factors& factors = step.factors[block.parameter];
    float* w = step.weights.data() + block.offset;
    const float* g = step.gradients.data() + block.offset;
    float* v = momentum_.data() + block.offset;
    if (recipe_.kind == OptimizerKind::momentum_sgd) {
      sgd_step({.gradient_factor = step.gradient_factor,
                .decay = factors.decay,
                .momentum = step.momentum,
                .rate = factors.rate,
                .nesterov = recipe_.nesterov},
               w, g, v, block.elements);
      continue;
    }
    rmsprop_step({.gradient_factor = step.gradient_factor,
                  .decay = factors.decay,
                  .momentum = step.momentum,
                  .sgd_rate = static_cast<float>(step.learning_rate * step.sgd_share),
                  .rmsprop_rate = static_cast<float>(recipe_.rmsprop_rate * (1 - step.sgd_share)),
                  .square_decay = static_cast<float>(recipe_.rmsprop_decay),
                  .epsilon = static_cast<float>(recipe_.rmsprop_epsilon)},
                 w, g, v, mean_square_.data() + block.offset, block.elements);
  }
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
  Step step{.weights = weights,
            .gradients = gradients,
            .gradient_factor = gradient_factor,
            .momentum = momentum_factor(learning_rate),
            .learning_rate = learning_rate};
  if (recipe_.kind == OptimizerKind::rmsprop_warm_up) step.sgd_share = sgd_share(recipe_, epoch);
  for (const ParameterPlace& parameter : parameters_) {
    const double decay = decays(parameter) ? recipe_.weight_decay : 0;
    step.factors.push_back({static_cast<float>(learning_rate), static_cast<float>(decay)});
  }
  if (recipe_.lars.enabled && !shared_.empty()) set_own_rates(shared_, true, step);
  on_workers([&](std::size_t worker) {
    for (const std::vector<Block>& parameter : own_[worker]) {
      set_own_rates(parameter, false, step);
      update(parameter, step);
    }
    const std::size_t first = shared_.size() * worker / workers_;
    const std::size_t last = shared_.size() * (worker + 1) / workers_;
    update(std::span(shared_).subspan(first, last - first), step);
  });
}

std::vector<Optimizer::State> Optimizer::state() {
  std::vector<State> all = {{"momentum", momentum_}};
  if (!mean_square_.empty()) all.push_back({"mean_square", mean_square_});
  if (recipe_.momentum_correction) all.push_back({"learning_rate", {&last_rate_, 1}});
  return all;
}

}  // namespace paceline::runtime

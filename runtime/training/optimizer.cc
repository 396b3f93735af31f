// Tests: tests/runtime/training/optimizer_test.cc.
#include "runtime/training/optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "runtime/device/cpu_device.h"
#include "runtime/tensor/optimizer_kernels.h"

namespace paceline::runtime {
namespace {

bool is_batch_norm(const ParameterPlace& parameter) {
  return parameter.role == ParameterRole::gamma || parameter.role == ParameterRole::beta;
}

std::int64_t elements_of(const std::vector<ParameterPlace>& parameters) {
  return parameters.empty() ? 0 : parameters.back().offset + parameters.back().elements;
}

}  // namespace

double sgd_share(const OptimizerRecipe& recipe, double epoch) {
  const double since_centre = (epoch - recipe.rmsprop_centre_epoch) / recipe.rmsprop_period_epochs;
  if (since_centre < 0) return std::exp(2 * since_centre) / 2;
  return since_centre < 0.5 ? 0.5 + since_centre : 1;
}

Optimizer::Optimizer(Device& device, const OptimizerRecipe& recipe,
                     std::vector<ParameterPlace> parameters, int threads)
    : Optimizer(device, recipe, parameters, {{0, elements_of(parameters)}}, threads) {}

Optimizer::Optimizer(Device& device, const OptimizerRecipe& recipe,
                     const std::vector<ParameterPlace>& parameters,
                     const std::vector<models::Elements>& parts, int threads)
    : recipe_(recipe), elements_(to_size(elements_of(parameters))), parameters_(parameters.size()) {
  if ((recipe_.is_adam() || recipe_.clip_norm > 0) && device.fastest() != MemoryKind::host)
    throw InputError("Adam and clip_norm are computed on CPUs only yet",
                     "leave --device out, or choose a recipe of momentum SGD");
  const bool is_whole = parts.size() == 1 && parts.front().size == elements_of(parameters);
  if (recipe_.lars.enabled && !is_whole)
    throw InputError("LARS needs the norms of whole layers, and a rank has parts of them",
                     "choose a strategy that is not sharded, or a recipe without LARS");
  std::size_t of_state = 0;
  for (const models::Elements& part : parts) {
    std::vector<UpdatedTensor> tensors;
    std::vector<std::size_t> of_part;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const ParameterPlace& parameter = parameters[i];
      const std::int64_t begin = std::max(parameter.offset, part.begin);
      const std::int64_t end = std::min(parameter.offset + parameter.elements, part.end());
      if (begin >= end) continue;
      const double decay = decays(parameter) ? recipe_.weight_decay : 0;
      tensors.push_back({.offset = to_size(begin - part.begin),
                         .elements = to_size(end - begin),
                         .decay = static_cast<float>(decay),
                         .has_own_rate = has_own_rate(parameter)});
      of_part.push_back(i);
    }
    if (tensors.empty()) continue;
    parts_.push_back({part, of_state,
                      UpdateTable(std::move(tensors), recipe_.lars.enabled, threads),
                      std::move(of_part)});
    of_state += to_size(part.size);
  }
  stream_ = device.make_stream();
  const auto zeros = [&] {
    Memory memory = device.allocate(of_state * sizeof(float), device.fastest());
    stream_->start(Fill{memory.array(NumberType::fp32), 0});
    return memory;
  };
  momentum_ = zeros();
  if (recipe_.kind != OptimizerKind::momentum_sgd) mean_square_ = zeros();
  wait_for(stream_->record(), device_patience, "set up the optimizer");
}

Optimizer::Optimizer(const OptimizerRecipe& recipe, std::vector<ParameterPlace> parameters,
                     int threads)
    : Optimizer(cpu_device(), recipe, std::move(parameters), threads) {}

bool Optimizer::decays(const ParameterPlace& parameter) const {
  if (parameter.role == ParameterRole::bias) return recipe_.decay_bias;
  return !is_batch_norm(parameter) || recipe_.decay_batch_norm;
}

bool Optimizer::has_own_rate(const ParameterPlace& parameter) const {
  if (!recipe_.lars.enabled) return false;
  if (parameter.role == ParameterRole::bias) return recipe_.lars.bias;
  return !is_batch_norm(parameter) || recipe_.lars.batch_norm;
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

void Optimizer::set_rule_of_adam(double learning_rate, UpdateRule& rule) {
  steps_ += 1;
  const auto step = static_cast<double>(steps_);
  rule.adam = true;
  rule.adam_rate = static_cast<float>(learning_rate / (1 - std::pow(recipe_.momentum, step)));
  rule.square_decay = static_cast<float>(recipe_.square_decay);
  rule.root_correction =
      static_cast<float>(1 / std::sqrt(1 - std::pow(recipe_.square_decay, step)));
  rule.adam_epsilon = static_cast<float>(recipe_.adam_epsilon);
  rule.decoupled_decay = recipe_.kind == OptimizerKind::adamw;
}

std::vector<double> Optimizer::squares_of(const ConstArrayView& gradients) const {
  const std::span<const float> values = host_floats(gradients);
  std::vector<double> sums(parameters_, 0.0);
  for (const Part& part : parts_)
    for (std::size_t i = 0; i < part.parameters.size(); ++i) {
      const UpdatedTensor& tensor = part.table.tensors()[i];
      const float* const first = values.data() + part.place.begin + tensor.offset;
      sums[part.parameters[i]] += square_sums(first, first, tensor.elements).gradients;
    }
  return sums;
}

void Optimizer::step(Stream& stream, const ArrayView& weights, const ConstArrayView& gradients,
                     float gradient_factor, double learning_rate, double epoch,
                     const WorkingCopies* copies) {
  PACELINE_ASSERT(weights.elements == elements_ && gradients.elements == elements_,
                  "the arrays are those of the parameters");
  UpdateRule rule{.gradient_factor = gradient_factor,
                  .learning_rate = learning_rate,
                  .momentum = momentum_factor(learning_rate),
                  .nesterov = recipe_.nesterov,
                  .look_ahead = static_cast<float>(recipe_.momentum),
                  .trust_coefficient = recipe_.lars.trust_coefficient,
                  .lars_epsilon = recipe_.lars.epsilon};
  if (recipe_.kind == OptimizerKind::rmsprop_warm_up) {
    const double share = sgd_share(recipe_, epoch);
    rule.rmsprop = true;
    rule.sgd_rate = static_cast<float>(learning_rate * share);
    rule.rmsprop_rate = static_cast<float>(recipe_.rmsprop_rate * (1 - share));
    rule.square_decay = static_cast<float>(recipe_.rmsprop_decay);
    rule.rmsprop_epsilon = static_cast<float>(recipe_.rmsprop_epsilon);
  }
  if (recipe_.is_adam()) set_rule_of_adam(learning_rate, rule);
  for (const Part& part : parts_) {
    const auto size = to_size(part.place.size);
    const auto begin = to_size(part.place.begin);
    const auto state = [&](const Memory& memory) {
      return memory.size() > 0 ? memory.array(NumberType::fp32).part(part.of_state, size)
                               : memory.array(NumberType::fp32);
    };
    stream.start(UpdateParameters{.table = &part.table,
                                  .rule = rule,
                                  .weights = weights.part(begin, size),
                                  .gradients = gradients.part(begin, size),
                                  .momentum = state(momentum_),
                                  .mean_square = state(mean_square_),
                                  .copies = copies});
  }
}

void Optimizer::step(std::span<float> weights, std::span<const float> gradients,
                     float gradient_factor, double learning_rate, double epoch) {
  step(*stream_, view_of(weights), view_of(gradients), gradient_factor, learning_rate, epoch);
  wait_for(stream_->record(), device_patience, "update the weights");
}

std::vector<Optimizer::State> Optimizer::state() {
  std::vector<State> all = {{"momentum", momentum_.array(NumberType::fp32)}};
  if (mean_square_.size() > 0) all.push_back({"mean_square", mean_square_.array(NumberType::fp32)});
  if (recipe_.is_adam())
    all.push_back({"steps", view_of(std::span(&steps_, 1)), /*is_of_elements=*/false});
  if (recipe_.momentum_correction)
    all.push_back({"learning_rate", view_of(std::span(&last_rate_, 1)), /*is_of_elements=*/false});
  return all;
}

}  // namespace paceline::runtime

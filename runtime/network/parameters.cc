// Tests: tests/runtime/network_parts_test.cc.
#include <algorithm>
#include <cmath>

#include "models/base/random.h"
#include "models/base/to_size.h"
#include "runtime/network/trainable_network.h"

namespace paceline::runtime {
namespace {

ParameterRole role_of(const models::LayerKind& kind, bool is_bias) {
  const bool normalises = std::holds_alternative<models::BatchNorm>(kind) ||
                          std::holds_alternative<models::LayerNorm>(kind);
  is_bias = is_bias || std::holds_alternative<models::TiedLinear>(kind);  // all that it has
  if (is_bias) return normalises ? ParameterRole::beta : ParameterRole::bias;
  return normalises ? ParameterRole::gamma : ParameterRole::weight;
}

// The longest way from the input to each layer, in layers.
std::vector<int> depths(const models::Network& network) {
  std::vector<int> result;
  for (const models::Layer& layer : network.layers()) {
    int depth = 0;
    for (const int input : layer.inputs)
      if (input >= 0) depth = std::max(depth, result[to_size(input)] + 1);
    result.push_back(depth);
  }
  return result;
}

// Whether a layer is the batch norm that ends the branch of a residual block: of the batch norms
// that an add reads, the deepest, as the other one is in the projection.
std::vector<bool> last_norms_of_blocks(const models::Network& network) {
  const std::vector<int> depth = depths(network);
  const auto& layers = network.layers();
  std::vector<bool> result(layers.size(), false);
  for (const models::Layer& layer : layers) {
    if (!std::holds_alternative<models::Add>(layer.kind)) continue;
    int deepest = models::network_input;
    for (const int input : layer.inputs) {
      if (input < 0) continue;
      const auto index = to_size(input);
      if (!std::holds_alternative<models::BatchNorm>(layers[index].kind)) continue;
      if (deepest < 0 || depth[index] > depth[to_size(deepest)]) deepest = input;
    }
    if (deepest >= 0) result[to_size(deepest)] = true;
  }
  return result;
}

bool is_of_sequences(const models::LayerKind& kind) {
  return std::holds_alternative<models::Embedding>(kind) ||
         std::holds_alternative<models::Linear>(kind) ||
         std::holds_alternative<models::TiedLinear>(kind);
}

// The linear layers whose output an add reads, by itself or behind a dropout: the ends of residual branches.
std::vector<bool> linear_ends_of_branches(const models::Network& network) {
  const auto& layers = network.layers();
  std::vector<bool> result(layers.size(), false);
  for (const models::Layer& layer : layers) {
    if (!std::holds_alternative<models::Add>(layer.kind)) continue;
    for (int input : layer.inputs) {
      if (input >= 0 && std::holds_alternative<models::Dropout>(layers[to_size(input)].kind))
        input = layers[to_size(input)].inputs.front();
      if (input >= 0 && std::holds_alternative<models::Linear>(layers[to_size(input)].kind))
        result[to_size(input)] = true;
    }
  }
  return result;
}

// The product of all dimensions but the first, which counts the outputs.
std::int64_t elements_of_each_output(const std::vector<std::int64_t>& shape) {
  std::int64_t product = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) product *= shape[i];
  return product;
}

void draw_normal(std::span<float> values, double deviation, Random& random) {
  for (float& value : values) value = static_cast<float>(deviation * random.normal());
}
void draw_uniform(std::span<float> values, double bound, Random& random) {
  for (float& value : values) value = static_cast<float>(bound * (2 * random.uniform() - 1));
}

}  // namespace

std::vector<ParameterPlace> parameter_places(const models::Network& network) {
  const models::NetworkWork work = models::work(network);
  std::vector<ParameterPlace> places;
  std::int64_t offset = 0;
  for (std::size_t i = work.layers.size(); i-- > 0;) {
    const auto& tensors = work.layers[i].parameters;
    for (std::size_t t = tensors.size(); t-- > 0;) {
      places.push_back({.name = tensors[t].name,
                        .role = role_of(network.layers()[i].kind, t == 1),
                        .shape = tensors[t].shape,
                        .offset = offset,
                        .elements = tensors[t].elements,
                        .layer = static_cast<int>(i)});
      offset += tensors[t].elements;
    }
  }
  return places;
}

std::vector<ParameterPlace> parameter_places(std::span<const models::Gradient> gradients) {
  std::vector<ParameterPlace> places;
  std::int64_t offset = 0;
  for (const models::Gradient& gradient : gradients) {
    places.push_back({.name = gradient.name,
                      .role = ParameterRole::weight,
                      .shape = {gradient.elements},
                      .offset = offset,
                      .elements = gradient.elements,
                      .layer = gradient.layer});
    offset += gradient.elements;
  }
  return places;
}

std::vector<float> initial_weights(const models::Network& network, const InitialWeights& how) {
  const std::vector<ParameterPlace> places = parameter_places(network);
  const std::vector<bool> ends_block = last_norms_of_blocks(network);
  const auto elements = places.empty() ? 0 : places.back().offset + places.back().elements;
  std::vector<float> weights(to_size(elements), 0.0F);
  const std::vector<bool> ends_branch = linear_ends_of_branches(network);
  constexpr double deviation = 0.02;  // of layers of sequences
  const double of_ends =
      deviation / std::sqrt(static_cast<double>(std::ranges::count(ends_branch, true)));
  Random random(how.seed);
  double bound_of_fan_in = 0;  // of the fully connected layer at hand
  // Layers are taken in the order of declaration, so that a weight comes before its bias.
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
    const std::span<float> values(weights.data() + place->offset, to_size(place->elements));
    const auto layer = to_size(place->layer);
    const bool convolves =
        std::holds_alternative<models::Convolution>(network.layers()[layer].kind);
    if (place->role == ParameterRole::gamma) {
      std::fill(values.begin(), values.end(), how.zero_last_gamma && ends_block[layer] ? 0 : 1);
    } else if (place->role == ParameterRole::weight && convolves) {
      const std::int64_t fan_out = place->shape[0] * place->shape[2] * place->shape[3];
      draw_normal(values, std::sqrt(2.0 / static_cast<double>(fan_out)), random);
    } else if (is_of_sequences(network.layers()[layer].kind)) {
      if (place->role == ParameterRole::weight)
        draw_normal(values, ends_branch[layer] ? of_ends : deviation, random);
    } else if (place->role == ParameterRole::weight) {
      bound_of_fan_in = 1 / std::sqrt(static_cast<double>(elements_of_each_output(place->shape)));
      draw_uniform(values, bound_of_fan_in, random);
    } else if (place->role == ParameterRole::bias && !convolves) {
      draw_uniform(values, bound_of_fan_in, random);
    }
  }
  return weights;
}

}  // namespace paceline::runtime

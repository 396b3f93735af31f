// Tests: tests/runtime/network_test.cc.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/network/shape_inference.h"
#include "runtime/network/computed_kinds.h"
#include "runtime/network/trainable_network.h"

namespace paceline::runtime {
namespace {

// Says what is not trained yet of a layer. It is empty where all of the layer is trained.
std::string missing(const models::Attention& attention) {
  if (attention.sliding_window > 0) return "has a sliding window";
  if (attention.window > 0) return "has windows";
  if (attention.learned_scale) return "learns the scale of its scores";
  if (attention.value_features > 0) return "has a latent vector";
  if (attention.head_norms) return "normalises its heads";
  if (attention.alibi) return "adds distances to its scores";
  return {};
}
std::string missing(const models::LayerNorm& norm) {
  return norm.rms && norm.bias ? "is a root mean square norm with a bias" : "";
}
std::string missing(const models::Embedding& embedding) {
  return embedding.of == models::Embedding::Of::segments ? "is of segments" : "";
}
template <class Kind>
std::string missing(const Kind& /*kind*/) {
  return {};
}
std::string missing(const models::Layer& layer, const models::Network& network,
                    std::span<const models::Shape> outputs) {
  const auto shape = [&](int input) {
    return input == models::network_input ? network.input() : outputs[to_size(input)];
  };
  const auto* const attention = std::get_if<models::Attention>(&layer.kind);
  if (attention != nullptr && layer.inputs.size() != 1 && layer.inputs.size() != 3)
    return "has a bias of its scores";
  const bool multiplies = std::holds_alternative<models::Multiply>(layer.kind);
  if (multiplies && shape(layer.inputs[0]) != shape(layer.inputs[1]))
    return "multiplies each channel by one number";
  return std::visit([](const auto& kind) { return missing(kind); }, layer.kind);
}

// Refuses the first layer for which `holds` is false.
template <class Holds>
void check_kinds(const models::Network& network, Holds holds, const std::string& problem,
                 const std::string& remedy) {
  const auto found = std::ranges::find_if_not(network.layers(), holds);
  if (found == network.layers().end()) return;
  throw InputError("layer '" + found->name + "' is of kind " +
                       std::string(models::name(found->kind)) + ", which is " + problem,
                   remedy);
}

// An embedding of tokens reads the network's input, and no other layer computes with the
// numbers of tokens. An embedding of positions reads the length alone.
void check_tokens(const models::Network& network) {
  for (const models::Layer& layer : network.layers()) {
    const auto* const embedding = std::get_if<models::Embedding>(&layer.kind);
    if (embedding != nullptr && embedding->of == models::Embedding::Of::positions) continue;
    const bool reads_input =
        std::ranges::find(layer.inputs, models::network_input) != layer.inputs.end();
    if (embedding != nullptr && !reads_input)
      throw InputError("layer '" + layer.name + "' embeds what another layer computes",
                       "let an embedding of tokens read the network's input");
    if (embedding == nullptr && reads_input && network.input().is_sequence)
      throw InputError("layer '" + layer.name + "' reads the tokens of the network's input",
                       "let an embedding read them");
  }
}

}  // namespace

void check_trainable(const models::Network& network) {
  constexpr const char* others = "predict, scale and replay take such networks";
  const auto& layers = network.layers();
  check_kinds(
      network,
      [](const models::Layer& layer) {
        return std::visit(
            [](const auto& kind) { return is_computed<std::decay_t<decltype(kind)>>; }, layer.kind);
      },
      "not trained yet", others);
  const std::vector<models::Shape> outputs = models::infer_shapes(network);
  for (const models::Layer& layer : layers)
    if (const std::string what = missing(layer, network, outputs); !what.empty())
      throw InputError("layer '" + layer.name + "' " + what + ", which is not trained yet", others);
  check_tokens(network);
  const auto is_loss = [](const models::Layer& layer) {
    return std::holds_alternative<models::SoftmaxCrossEntropy>(layer.kind);
  };
  const auto loss = std::find_if(layers.begin(), layers.end(), is_loss);
  if (loss == layers.end())
    throw InputError("network '" + network.name() + "' ends in layer '" + layers.back().name +
                         "', which is no loss",
                     "add a softmax_cross_entropy");
  if (loss != layers.end() - 1)
    throw InputError("layer '" + loss->name + "' is a loss and not the last layer",
                     "end the network there: training takes one loss");
}

void check_trainable_on_gpus(const models::Network& network) {
  check_trainable(network);
  check_kinds(
      network,
      [](const models::Layer& layer) {
        return std::visit(
            [](const auto& kind) { return is_computed_on_gpus<std::decay_t<decltype(kind)>>; },
            layer.kind);
      },
      "trained on CPUs only yet", "leave --device out, or choose a network of images");
}

}  // namespace paceline::runtime

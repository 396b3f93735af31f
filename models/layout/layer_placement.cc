// Tests: tests/models/layout_test.cc.
#include "models/layout/layer_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::models {
namespace {

template <std::size_t n>
bool is_among(std::string_view kind, const std::array<std::string_view, n>& kinds) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

// Kinds that treat each feature, or each head, by itself.
constexpr std::array<std::string_view, 6> by_feature = {"attention", "gelu",     "silu",
                                                        "tanh",      "multiply", "dropout"};
constexpr std::array<std::string_view, 10> by_element = {
    "layer_norm",    "add",           "dropout",          "select_tokens",
    "first_token",   "mean_token",    "stochastic_depth", "route_tokens",
    "expert_linear", "combine_tokens"};

// The table of rank_work.h: what a layer makes of an input that is placed so.
LayerPlacement placement_of(const LayerWork& layer, Activation in, Activation between) {
  const std::string_view kind = layer.kind;
  if (kind == "embedding")
    // The rows of positions and segments are few, and each rank has them.
    return layer.reads_tokens ? LayerPlacement{replicated, partial, WeightSplit::by_entries}
                              : LayerPlacement{replicated, between, WeightSplit::on_all};
  if (kind == "linear" || kind == "tied_linear" || kind == "fully_connected")
    return in == by_features ? LayerPlacement{by_features, partial, WeightSplit::by_inputs}
                             : LayerPlacement{replicated, by_features, WeightSplit::by_outputs};
  if (kind == "softmax_cross_entropy") {
    const Activation takes = in == by_features ? by_features : between;
    return {takes, takes};
  }
  if (in == by_features && is_among(kind, by_feature)) return {by_features, by_features};
  if (is_among(kind, by_element) || is_among(kind, by_feature)) return {between, between};
  throw InputError({"--tensor"}, fmt::format("layer '{}' ({}) cannot be split", layer.name, kind),
                   "give a language model as --model, or leave it out");
}

// The linear layers that a norm reads, or whose features all heads' keys share.
std::vector<bool> narrow_layers(const NetworkWork& network) {
  std::vector<bool> narrow(network.layers.size(), false);
  for (const LayerWork& reader : network.layers) {
    if (reader.inputs.empty() || reader.inputs.back() == network_input) continue;
    const auto input = to_size(reader.inputs.back());
    const bool is_linear = network.layers[input].kind == "linear";
    if (is_linear && (reader.kind == "layer_norm" || reader.shares_last_input))
      narrow[input] = true;
  }
  return narrow;
}

}  // namespace

std::vector<LayerPlacement> layer_placements(const NetworkWork& network, Activation between) {
  std::vector<LayerPlacement> places;
  const std::vector<bool> narrow = narrow_layers(network);
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    Activation in = replicated;
    for (const int input : network.layers[i].inputs)
      if (input != network_input && in != by_features) in = places[to_size(input)].leaves;
    places.push_back(narrow[i] ? LayerPlacement{between, between}
                               : placement_of(network.layers[i], in, between));
  }
  return places;
}

Activation gradient_left(const LayerPlacement& reader) {
  const bool is_summed = reader.takes == replicated && reader.weights == WeightSplit::by_outputs;
  return is_summed ? partial : reader.takes;
}
Activation gradient_taken(const LayerPlacement& writer) {
  return writer.leaves == partial ? replicated : writer.leaves;
}

const LayerWork* attention_of_joint_heads(const NetworkWork& network, std::size_t layer) {
  for (std::size_t reader = layer + 1; reader < network.layers.size(); ++reader) {
    const LayerWork& attention = network.layers[reader];
    if (attention.heads > 0 && attention.inputs.size() == 1 &&
        attention.inputs.front() == static_cast<int>(layer))
      return &attention;
  }
  return nullptr;
}

}  // namespace paceline::models

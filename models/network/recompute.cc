// Tests: tests/models/recompute_test.cc.
#include "models/network/recompute.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/base/to_size.h"

namespace paceline::models {
namespace {

constexpr std::array<std::pair<RecomputeKind, std::string_view>, 4> kinds = {
    {{RecomputeKind::none, "none"},
     {RecomputeKind::selective, "selective"},
     {RecomputeKind::per_op, "per-op"},
     {RecomputeKind::full, "full"}}};
constexpr int most_blocks = 100'000;

bool is_attention(const LayerWork& layer) {
  return layer.heads > 0;
}

bool is_product(const LayerWork& layer) {
  return layer.kind == "linear" || layer.kind == "fully_connected" || layer.kind == "expert_linear";
}

}  // namespace

std::string name(const Recompute& recompute) {
  const std::string kind(name_in(kinds, recompute.kind));
  return recompute.every == 1 ? kind : fmt::format("{}:{}", kind, recompute.every);
}

std::string description(const Recompute& recompute) {
  switch (recompute.kind) {
    case RecomputeKind::none:
      return {};
    case RecomputeKind::selective:
      return "what attention that is not fused keeps beside its inputs and its output";
    case RecomputeKind::per_op:
      return "all of a block but its input, attention, and every second matrix product";
    case RecomputeKind::full:
      return recompute.every == 1
                 ? "the activations of each block"
                 : fmt::format("the activations of the first of every {} blocks", recompute.every);
  }
  return {};
}

Recompute recompute_from_name(std::string_view text) {
  constexpr std::string_view of_some = "full:";
  if (text.starts_with(of_some))
    return {RecomputeKind::full,
            static_cast<int>(parse_count(text.substr(of_some.size()), 1, most_blocks))};
  return {value_named(kinds, "recomputation", text)};
}

Recomputation::Recomputation(const NetworkWork& network, const Recompute& recompute)
    : layers_(network.layers.size()) {
  std::map<std::string_view, int> blocks;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const LayerWork& layer = network.layers[i];
    Layer& of = layers_[i];
    of.kept = layer.stored;
    const std::string_view block = block_of(layer.name);
    if (block.empty()) continue;
    const int number = blocks.try_emplace(block, static_cast<int>(blocks.size())).first->second;
    const bool is_square = is_attention(layer) && layer.head_features == 0;
    if (recompute.kind == RecomputeKind::selective && is_square)
      of = {1, std::min(layer.stored, layer.output.elements()), false};
    else if (recompute.kind == RecomputeKind::full && number % recompute.every == 0)
      // A block's output is another block's input.
      of = {1, layer.leaves_block ? layer.stored : 0, true};
  }
  if (recompute.kind == RecomputeKind::per_op) keep_outputs(network);
}

// Counts products in the order of the network, anew in each block. The network may be a part of another one, and inputs of
// layers are places in the whole one: attention is taken to read the product in front of it.
void Recomputation::keep_outputs(const NetworkWork& network) {
  std::vector<const LayerWork*> reader(layers_.size());  // the attention that reads it
  for (std::size_t i = 0, last = layers_.size(); i < layers_.size(); ++i) {
    if (is_product(network.layers[i])) last = i;
    if (is_attention(network.layers[i]) && last < layers_.size()) reader[last] = &network.layers[i];
  }
  std::string_view block;
  int products = 0;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const LayerWork& layer = network.layers[i];
    const std::string_view own = block_of(layer.name);
    if (std::exchange(block, own) != own) products = 0;
    if (own.empty() || layer.leaves_block || is_attention(layer)) continue;
    if (!is_product(layer)) {
      layers_[i] = {1, 0, false};
      continue;
    }
    const LayerWork* attention = reader[i];
    if (attention != nullptr && attention->inputs.size() == 1 && attention->key_value_heads > 0) {
      // Queries and values are kept of queries, keys and values.
      const auto heads = static_cast<double>(attention->heads);
      const auto of_keys = static_cast<double>(attention->key_value_heads);
      const double keys = of_keys / (heads + 2 * of_keys);
      layers_[i] = {keys, static_cast<std::int64_t>((1 - keys) * static_cast<double>(layer.stored)),
                    false};
      products += 3;
    } else if (++products % 2 == 0) {
      layers_[i] = {1, 0, false};
    } else {
      layers_[i].kept = layer.output.elements();
    }
  }
}

}  // namespace paceline::models

// Activations that a rank does not keep for the backward pass, because it computes them again there.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/network/work.h"

namespace paceline::models {

enum class RecomputeKind {
  none,
  // Attention keeps its inputs and its output, and computes scores, softmax and mask again (Korthikanti 2022, arXiv
  // 2205.05198, 5; Megatron-LM's selective recomputation). Fused attention keeps none of these, so that nothing changes.
  selective,
  // A block keeps its input, the outputs of attention, and those of its first, third, ... matrix product, and computes
  // the rest again. Queries, keys and values are three products (torchtitan's selective "op").
  per_op,
  // A block (block_of() in work.h) keeps its input, and its backward pass begins with its forward pass
  // (Chen 2016, arXiv 1604.06174): PyTorch's checkpoint of each block, Megatron-LM's full recomputation.
  full,
};

struct Recompute {
  RecomputeKind kind = RecomputeKind::none;
  int every = 1;  // `full` computes the first of this many blocks again; the others keep all

  auto operator<=>(const Recompute&) const = default;

  static const Recompute none;
  static const Recompute full;
};
inline constexpr Recompute Recompute::none{};
inline constexpr Recompute Recompute::full{RecomputeKind::full};

// "none", "selective", "per-op", "full", "full:2".
[[nodiscard]] std::string name(const Recompute& recompute);
// Says in words what is computed again: "the activations of each block". The text of `none` is empty.
[[nodiscard]] std::string description(const Recompute& recompute);
// Throws InputError.
[[nodiscard]] Recompute recompute_from_name(std::string_view text);

// Says of each layer of a network what it keeps and what it computes again.
class Recomputation {
 public:
  // The network outlives this.
  Recomputation(const NetworkWork& network, const Recompute& recompute);

  // The share of the layer's forward pass that the backward pass repeats: 0 to 1.
  [[nodiscard]] double again(std::size_t layer) const { return layers_[layer].again; }
  // Elements of LayerWork::stored that are kept from the forward to the backward pass of its block.
  [[nodiscard]] std::int64_t kept(std::size_t layer) const { return layers_[layer].kept; }
  // Whether the ranks of a sample exchange again what they do in the layer's forward pass.
  [[nodiscard]] bool exchanges_again(std::size_t layer) const {
    return layers_[layer].exchanges_again;
  }

 private:
  struct Layer {
    double again = 0;
    std::int64_t kept = 0;
    bool exchanges_again = false;
  };
  void keep_outputs(const NetworkWork& network);

  std::vector<Layer> layers_;
};

}  // namespace paceline::models

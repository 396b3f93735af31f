// Which activations a rank computes anew in the backward pass, in place of keeping them.
#pragma once

#include <array>
#include <string_view>
#include <utility>

namespace paceline::models {

enum class Recompute {
  none,
  // A block (block_of() in work.h) keeps its input, and its backward pass begins with its forward pass
  // (Chen 2016, arXiv 1604.06174): PyTorch's checkpoint of each block, Megatron-LM's full recomputation.
  full,
};

inline constexpr std::array<std::pair<Recompute, std::string_view>, 2> recomputes = {
    {{Recompute::none, "none"}, {Recompute::full, "full"}}};

[[nodiscard]] constexpr std::string_view name(Recompute recompute) {
  return recompute == Recompute::none ? recomputes[0].second : recomputes[1].second;
}

}  // namespace paceline::models

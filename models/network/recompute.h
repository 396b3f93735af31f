// Activations that a rank does not keep for the backward pass, because it computes them again there.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "models/base/names.h"

namespace paceline::models {

enum class Recompute {
  none,
  // A block (block_of() in work.h) keeps its input, and its backward pass begins with its forward pass
  // (Chen 2016, arXiv 1604.06174): PyTorch's checkpoint of each block, Megatron-LM's full recomputation.
  full,
};

inline constexpr std::array<std::pair<Recompute, std::string_view>, 2> recomputes = {
    {{Recompute::none, "none"}, {Recompute::full, "full"}}};

[[nodiscard]] inline std::string_view name(Recompute recompute) {
  return name_in(recomputes, recompute);
}

}  // namespace paceline::models

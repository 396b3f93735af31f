// Average pooling to a given output size whose windows may differ in size and overlap: window i of
// n over a length s is [floor(i s / n), ceil((i + 1) s / n)), as PyTorch's.
#pragma once

#include <cstdint>
#include <span>

#include "models/network/layer.h"

namespace paceline::runtime {

struct AdaptivePool {
  std::int64_t planes = 1;  // samples x channels
  models::Extent in;
  models::Extent out;

  // (planes, in) to (planes, out), and the gradient back.
  void forward(std::span<const float> source, std::span<float> target) const;
  void backward(std::span<const float> gradient, std::span<float> target) const;
};

}  // namespace paceline::runtime

// Dropout (Srivastava 2014), inverted: what is kept is scaled by 1 / (1 - probability).
#pragma once

#include <cstdint>
#include <span>

namespace paceline::runtime {

struct DropoutMask {
  std::uint64_t seed = 0;
  int layer = 0;
  double probability = 0.5;  // of 0
};

// Element i is dropped or kept by (seed, layer, i) alone: the same for any number of threads, and
// again in the backward pass. Source and target may be one.
void drop_out(const DropoutMask& mask, std::span<const float> source, std::span<float> target);

}  // namespace paceline::runtime

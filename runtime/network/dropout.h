// Dropout (Srivastava 2014), inverted: what is kept is scaled by 1 / (1 - probability).
#pragma once

#include <cstdint>
#include <span>

namespace paceline::runtime {

struct DropoutMask {
  std::uint64_t seed = 0;
  int layer = 0;
  double probability = 0.5;  // that an element becomes 0
};

// The seed of the masks of one rank in one iteration (from 0, through all epochs) of a job. Each
// argument is hashed by itself, so that neighbouring seeds, iterations and ranks share no masks.
[[nodiscard]] std::uint64_t dropout_seed(std::uint64_t job_seed, std::int64_t iteration, int rank);

// Element i is dropped or kept by (seed, layer, i) alone: the same for any number of threads, and
// again in the backward pass. Source and target may be one.
void drop_out(const DropoutMask& mask, std::span<const float> source, std::span<float> target);

}  // namespace paceline::runtime

// The table of an update (runtime/device/parameter_update.h) as kernels read it, in memory of the
// device.
#pragma once

#include <cstdint>

namespace paceline::runtime::cuda {

// A stretch of one tensor in the flat arrays.
struct Stretch {
  std::uint64_t first = 0;
  std::uint32_t elements = 0;
  std::uint32_t tensor = 0;
};

// One tensor.
struct TensorEntry {
  std::uint32_t first_block = 0;  // of its norms
  std::uint32_t blocks = 0;       // 0 where it has no rate of its own
  float decay = 0;
};

// The sums of squares of one block.
struct BlockSums {
  double weights = 0;
  double gradients = 0;
};

// Elements of a block of the norms, and of a tile of the update.
inline constexpr std::uint32_t block_elements = 16384;
inline constexpr std::uint32_t tile_elements = 4096;

struct UpdateTables {
  const Stretch* blocks = nullptr;  // of tensors that have a rate of their own, in their order
  std::uint32_t block_count = 0;
  const Stretch* tiles = nullptr;  // of all tensors
  std::uint32_t tile_count = 0;
  const TensorEntry* tensors = nullptr;
  std::uint32_t tensor_count = 0;
  std::uint64_t elements = 0;  // of the flat arrays
  // What a step works in.
  BlockSums* sums = nullptr;
  float* rates = nullptr;
};

}  // namespace paceline::runtime::cuda

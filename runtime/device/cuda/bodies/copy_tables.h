// A table of working copies (runtime/device/working_copies.h) as kernels read it, in memory of the
// device.
#pragma once

#include <cstdint>

#include "models/base/precision.h"
#include "runtime/device/cuda/bodies/update_table.h"

namespace paceline::runtime::cuda {

// The copy of one tensor, as kernels read it.
struct CopyEntry {
  void* target = nullptr;
  std::uint64_t first = 0;  // of the tensor in the flat arrays
  std::uint32_t channels = 1;
  std::uint32_t pixels = 1;
  std::uint32_t stored_channels = 1;
  models::NumberType type = models::NumberType::fp32;
  bool in_order = true;
};

// A table of working copies in memory of the device. Tiles are those of an update that writes them.
struct CopyTables {
  const Stretch* tiles = nullptr;
  std::uint32_t tile_count = 0;
  const CopyEntry* entries = nullptr;
  std::uint32_t entry_count = 0;
  std::uint32_t shared_bytes = 0;  // of a block; 0 where all copies have the order of their masters
};

// The numbers of a tile in shared memory begin at as many numbers behind a multiple of four as they do
// in the flat arrays.
inline constexpr std::uint32_t staged_elements = tile_elements + 4;

}  // namespace paceline::runtime::cuda

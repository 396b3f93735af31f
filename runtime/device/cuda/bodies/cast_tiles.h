// A table of many casts (runtime/device/cast_table.h) as a kernel reads it, in memory of the device.
#pragma once

#include <cstdint>

#include "runtime/device/cuda/bodies/pieces.h"

namespace paceline::runtime::cuda {

// A stretch of one cast, which one block of threads does.
struct CastTile {
  const void* source = nullptr;
  void* target = nullptr;
  Pieces pieces;
};

// Elements of a tile, at most.
inline constexpr std::uint32_t cast_tile_elements = 4096;

struct CastTiles {
  const CastTile* tiles = nullptr;
  std::uint32_t tile_count = 0;
};

}  // namespace paceline::runtime::cuda

// The body of many casts in one launch: packs tensors into a bucket, and unpacks them.
#pragma once

#include <cstdint>

#include "runtime/device/cast_table.h"
#include "runtime/device/cuda/bodies/arrays.h"
#include "runtime/device/cuda/bodies/cast_tiles.h"

namespace paceline::runtime::cuda {

// target[i] = source[i], rounded; where both types are one, a copy of the bits. A block has a tile.
// 6 bytes an element between FP32 and 16 bits, 8 and 4 for copies.
template <class Target, class Source>
struct CastManyBody {
  static constexpr int phases = 1;
  static constexpr unsigned width = piece_width<Target, Source>;
  const CastTile* tiles;
  std::uint32_t tile_count;
  const Cast* casts;  // of the table, in memory of the host: what is touched
  std::uint32_t cast_count;

  PACELINE_HD void phase(int, const Block& block) const {
    const CastTile tile = tiles[block.block];
    const auto* const source = static_cast<const Source*>(tile.source);
    auto* const target = static_cast<Target*>(tile.target);
    for (std::uint64_t i = block.thread; i < tile.pieces.count(); i += block.threads) {
      tile.pieces.visit<width>(
          i,
          [source, target](std::uint64_t first) {
            if constexpr (__is_same(Target, Source)) {
              *words_at<Words<4>>(target + first) = *words_at<Words<4>>(source + first);
            } else {
              float values[width];
              load(source + first, values);
              store(target + first, values);
            }
          },
          [source, target](std::uint64_t at) {
            if constexpr (__is_same(Target, Source))
              target[at] = source[at];
            else
              store(target + at, value_of(source[at]));
          });
    }
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.read(tiles, tile_count);
    for (std::uint32_t i = 0; i < cast_count; ++i) {
      visitor.read(reinterpret_cast<const Source*>(casts[i].source.data), casts[i].source.elements);
      visitor.write(reinterpret_cast<Target*>(casts[i].target.data), casts[i].target.elements);
    }
  }
};

}  // namespace paceline::runtime::cuda

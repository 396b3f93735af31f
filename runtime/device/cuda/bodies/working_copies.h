// How an update writes the working copies of parameters (runtime/device/working_copies.h), a tile at a
// time.
//
// Where a copy has the order of the master, a thread writes the numbers that it has just made. Where it
// has another, they go through the shared memory of the block: an element of the master is a row
// (output, channel) and a pixel, a tile has whole rows, and neighbouring threads write neighbouring
// channels of one pixel, 16 bytes each where the rows of a tile begin and end at multiples of that.
#pragma once

#include <cstdint>

#include "models/base/precision.h"
#include "runtime/device/cuda/bodies/copy_tables.h"
#include "runtime/device/cuda/bodies/numbers.h"
#include "runtime/device/working_copies.h"

namespace paceline::runtime::cuda {

// An update without copies.
struct NoCopies {
  static constexpr bool exist = false;
};

struct Copies {
  static constexpr bool exist = true;
  const CopyEntry* entries;
  std::uint32_t entry_count;
  const WorkingCopy* table;  // in memory of the host: what is touched

  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.read(entries, entry_count);
    for (std::uint32_t i = 0; i < entry_count; ++i)
      visitor.write(table[i].target.data, table[i].target.bytes());
  }
};

// Takes the new weights of a tile to their copy. Number is the copy's type.
template <class Number>
struct CopyWriter {
  Stretch tile;
  CopyEntry copy;
  Number* staged;  // in shared memory
  bool aligned;    // groups of four numbers of the flat arrays are aligned in the copy, too

  PACELINE_HD CopyWriter(const Stretch& of_tile, const CopyEntry& entry, const Block& block)
      : tile(of_tile),
        copy(entry),
        staged(block.shared<Number>() + of_tile.first % 4),
        aligned(!entry.in_order ||
                (reinterpret_cast<std::uintptr_t>(entry.target) / sizeof(Number) + 4 -
                 entry.first % 4) %
                        4 ==
                    0) {}

  // Where number i of the flat arrays goes first.
  [[nodiscard]] PACELINE_HD Number* place(std::uint64_t i) const {
    if (copy.in_order) return static_cast<Number*>(copy.target) + (i - copy.first);
    return staged + (i - tile.first);
  }
  PACELINE_HD void take(std::uint64_t i, float weight) const { store(place(i), weight); }
  // Four numbers, the first of which is at a multiple of four.
  PACELINE_HD void take(std::uint64_t i, const float (&weights)[4]) const {
    if (aligned) return store(place(i), weights);
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) store(place(i + k), weights[k]);
  }

  // Behind a barrier: what is in shared memory goes to the copy.
  PACELINE_HD void write(const Block& block) const {
    constexpr unsigned width = 16 / sizeof(Number);
    const auto begin = static_cast<std::uint32_t>(tile.first - copy.first);
    if (begin % copy.pixels != 0 || tile.elements % copy.pixels != 0) return write_scattered(block);
    const std::uint32_t first_row = begin / copy.pixels;
    const std::uint32_t rows = tile.elements / copy.pixels;
    const bool whole = (first_row | rows | copy.channels | copy.stored_channels) % width == 0 &&
                       reinterpret_cast<std::uintptr_t>(copy.target) % 16 == 0;
    if (whole)
      write_rows<width>(block, first_row, rows);
    else
      write_rows<1>(block, first_row, rows);
  }

 private:
  // `width` channels of a pixel at a time.
  template <unsigned width>
  PACELINE_HD void write_rows(const Block& block, std::uint32_t first_row,
                              std::uint32_t rows) const {
    const std::uint32_t groups = rows / width;
    for (std::uint32_t i = block.thread; i < groups * copy.pixels; i += block.threads) {
      const std::uint32_t pixel = i / groups;
      const std::uint32_t row = i % groups * width;
      const Number* const from = staged + row * copy.pixels + pixel;
      Number* const to = place_of(first_row + row, pixel);
      if constexpr (width == 1) {
        *to = *from;
      } else {
        struct alignas(16) Group {
          Number numbers[width];
        };
        Group group;
#pragma unroll
        for (unsigned k = 0; k < width; ++k) group.numbers[k] = from[k * copy.pixels];
        *words_at<Group>(to) = group;
      }
    }
  }
  // Tiles of parts of rows, whose pixels are more than a tile has room for.
  PACELINE_HD void write_scattered(const Block& block) const {
    for (std::uint32_t i = block.thread; i < tile.elements; i += block.threads) {
      const auto at = static_cast<std::uint32_t>(tile.first - copy.first) + i;
      *place_of(at / copy.pixels, at % copy.pixels) = staged[i];
    }
  }
  [[nodiscard]] PACELINE_HD Number* place_of(std::uint32_t row, std::uint32_t pixel) const {
    const std::uint32_t output = row / copy.channels;
    return static_cast<Number*>(copy.target) +
           std::uint64_t{output * copy.pixels + pixel} * copy.stored_channels + row % copy.channels;
  }
};

// Calls action(writer) with the writer of the copy's type.
template <class Action>
PACELINE_HD void with_writer(const Stretch& tile, const CopyEntry& copy, const Block& block,
                             const Action& action) {
  switch (copy.type) {
    case models::NumberType::fp16:
      return action(CopyWriter<Fp16>(tile, copy, block));
    case models::NumberType::bf16:
      return action(CopyWriter<Bf16>(tile, copy, block));
    case models::NumberType::fp32:
      return action(CopyWriter<float>(tile, copy, block));
  }
}

}  // namespace paceline::runtime::cuda

// How arrays of one length are cut into the pieces that one call of an element-wise body takes:
// whole pieces are 16-byte accesses, the ends are single numbers.
//
// An array may begin anywhere that suits its numbers. Pieces begin where the arrays' addresses are
// multiples of 16 bytes, so that the first piece may begin before the arrays do, and the last end
// behind them: of these only the numbers inside are touched. Where no cut suits all arrays, because
// they are out of step, a piece is one number.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device/cuda/block.h"

namespace paceline::runtime::cuda {

struct Pieces {
  std::uint64_t elements = 0;  // of each array
  std::uint32_t skew = 0;      // numbers of the first piece before the arrays
  std::uint32_t width = 1;     // numbers of a piece

  PACELINE_HD std::uint64_t count() const { return (skew + elements + width - 1) / width; }

  // Calls whole(first) if piece i is whole, and otherwise single(at) for each number of it.
  template <unsigned whole_width, class Whole, class Single>
  PACELINE_HD void visit(std::uint64_t i, const Whole& whole, const Single& single) const {
    if (width == 1) return single(i);
    const std::uint64_t begin = i * whole_width;
    const std::uint64_t first = begin < skew ? 0 : begin - skew;
    const std::uint64_t end = begin + whole_width - skew;
    if (begin >= skew && end <= elements) return whole(first);
    for (std::uint64_t at = first; at < end && at < elements; ++at) single(at);
  }
};

// Pieces of `whole_width` numbers of an array with numbers of `size` bytes, and of another in step.
// `whole_width` times the smaller size is 16.
inline Pieces pieces_of(unsigned whole_width, std::uint64_t elements, const void* a,
                        std::size_t size_a, const void* b, std::size_t size_b) {
  const auto skew_of = [whole_width](const void* p, std::size_t size) {
    return reinterpret_cast<std::uintptr_t>(p) / size % whole_width;
  };
  const std::size_t narrow = size_a < size_b ? size_a : size_b;
  const std::uint64_t skew = size_a == narrow ? skew_of(a, size_a) : skew_of(b, size_b);
  // The wider array is cut at multiples of 16 bytes, too, and not of a whole piece.
  const auto in_step = [skew](const void* p, std::size_t size) {
    return (reinterpret_cast<std::uintptr_t>(p) - skew * size) % 16 == 0;
  };
  if (!in_step(a, size_a) || !in_step(b, size_b)) return {elements, 0, 1};
  return {elements, static_cast<std::uint32_t>(skew), whole_width};
}
inline Pieces pieces_of(unsigned whole_width, std::uint64_t elements, const void* a,
                        std::size_t size) {
  return pieces_of(whole_width, elements, a, size, a, size);
}

}  // namespace paceline::runtime::cuda

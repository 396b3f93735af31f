// Bodies of the kernels on one array or two (runtime/device/kernels.h), element by element. All are
// bound by memory; the floor of each is the bytes that its line says an element moves, at the
// bandwidth of the device's memory.
#pragma once

#include <cstdint>

#include "runtime/device/cuda/bodies/numbers.h"
#include "runtime/device/cuda/bodies/pieces.h"

namespace paceline::runtime::cuda {

// Numbers in one piece: 16 bytes of the narrower type.
template <class A, class B>
inline constexpr unsigned piece_width = 16 / (sizeof(A) < sizeof(B) ? sizeof(A) : sizeof(B));

// target[i] = source[i], rounded. 6 bytes an element between FP32 and 16 bits. Copies between
// arrays of one type are the runtime's (cudaMemcpyAsync), which keeps the bits of NaN.
template <class Target, class Source>
struct CastBody {
  static constexpr unsigned width = piece_width<Target, Source>;
  const Source* source;
  Target* target;
  Pieces pieces;

  PACELINE_HD void operator()(std::uint64_t i) const {
    pieces.visit<width>(
        i,
        [this](std::uint64_t first) {
          float values[width];
          load(source + first, values);
          store(target + first, values);
        },
        [this](std::uint64_t at) { store(target + at, value_of(source[at])); });
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.read(source, pieces.elements);
    visitor.write(target, pieces.elements);
  }
};

// target[i] = target[i] + source[i], the sum in FP32, rounded to the target's type. 12 bytes an
// element in FP32, 6 in 16 bits, 10 from 16 bits to FP32.
template <class Target, class Source>
struct AddBody {
  static constexpr unsigned width = piece_width<Target, Source>;
  const Source* source;
  Target* target;
  Pieces pieces;

  PACELINE_HD void operator()(std::uint64_t i) const {
    pieces.visit<width>(
        i,
        [this](std::uint64_t first) {
          float sums[width];
          float values[width];
          load(target + first, sums);
          load(source + first, values);
#pragma unroll
          for (unsigned k = 0; k < width; ++k) sums[k] += values[k];
          store(target + first, sums);
        },
        [this](std::uint64_t at) {
          store(target + at, value_of(target[at]) + value_of(source[at]));
        });
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.read(source, pieces.elements);
    visitor.write(target, pieces.elements);
  }
};

// target[i] = source[i] * factor in FP32; sets *found to 1 if a result is NaN or infinite. 6 bytes
// an element from 16 bits, 8 from FP32. The source may be the target.
template <class Source>
struct UnscaleBody {
  static constexpr unsigned width = piece_width<float, Source>;
  const Source* source;
  float* target;
  float factor;
  std::uint32_t* found;
  Pieces pieces;

  PACELINE_HD void operator()(std::uint64_t i) const {
    pieces.visit<width>(
        i,
        [this](std::uint64_t first) {
          float values[width];
          load(source + first, values);
          bool finite = true;
#pragma unroll
          for (unsigned k = 0; k < width; ++k) {
            values[k] *= factor;
            finite = finite && is_finite(values[k]);
          }
          store(target + first, values);
          if (!finite) *found = 1;
        },
        [this](std::uint64_t at) {
          const float value = value_of(source[at]) * factor;
          store(target + at, value);
          if (!is_finite(value)) *found = 1;
        });
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.read(source, pieces.elements);
    visitor.write(target, pieces.elements);
    visitor.write(found, 1);
  }
};

// target[i] = value, a copy of its bits. 4 bytes an element.
struct FillBody {
  static constexpr unsigned width = 4;
  float* target;
  float value;
  Pieces pieces;

  PACELINE_HD void operator()(std::uint64_t i) const {
    pieces.visit<width>(
        i,
        [this](std::uint64_t first) {
          Words<4> group;
#pragma unroll
          for (unsigned k = 0; k < 4; ++k) group.word[k] = bits_of(value);
          *words_at<Words<4>>(target + first) = group;
        },
        [this](std::uint64_t at) { target[at] = value; });
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.write(target, pieces.elements);
  }
};

// Sets *found to 1 if a number is NaN or infinite. 4 bytes an element. `found` may be in pinned
// memory: nothing is written where all numbers are finite.
struct FindNotFiniteBody {
  static constexpr unsigned width = 4;
  const float* values;
  std::uint32_t* found;
  Pieces pieces;

  PACELINE_HD void operator()(std::uint64_t i) const {
    pieces.visit<width>(
        i,
        [this](std::uint64_t first) {
          float group[width];
          load(values + first, group);
          bool finite = true;
#pragma unroll
          for (unsigned k = 0; k < width; ++k) finite = finite && is_finite(group[k]);
          if (!finite) *found = 1;
        },
        [this](std::uint64_t at) {
          if (!is_finite(values[at])) *found = 1;
        });
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.read(values, pieces.elements);
    visitor.write(found, 1);
  }
};

}  // namespace paceline::runtime::cuda

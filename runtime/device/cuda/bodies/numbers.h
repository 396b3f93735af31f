// The numbers of kernels' bodies: FP32, FP16 and BF16 in memory, FP32 in arithmetic, with the bits
// that runtime/tensor/kernels.h says.
//
// Conversions between FP32 and 16 bits have two forms. On a GPU they are the hardware's, which
// convert two numbers in one instruction and round to nearest, ties to even; on the host they are
// those of runtime/tensor/kernels_portable.cc. The hardware's NaN is 0x7fff (0x7fffffff for sums),
// so that it is replaced in both forms.
#pragma once

#include <cstdint>

#include "runtime/device/cuda/block.h"

namespace paceline::runtime::cuda {

// Numbers as their bits.
struct Fp16 {
  std::uint16_t bits;
};
struct Bf16 {
  std::uint16_t bits;
};

inline constexpr std::uint32_t infinity_bits = 0x7f800000;
inline constexpr std::uint32_t nan_bits = 0x7fc00000;

PACELINE_HD inline std::uint32_t bits_of(float value) {
  return __builtin_bit_cast(std::uint32_t, value);
}
PACELINE_HD inline float float_of(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

// Every NaN replaced by the positive quiet NaN.
PACELINE_HD inline float canonical(float value) {
  return value == value ? value : float_of(nan_bits);
}
PACELINE_HD inline bool is_finite(float value) {
  return (bits_of(value) & infinity_bits) != infinity_bits;
}

// The value in FP32, exactly. A NaN keeps its bits in FP32, and whatever it becomes is to be made
// canonical.
PACELINE_HD inline float value_of(float number) {
  return number;
}
PACELINE_HD inline float value_of(Bf16 number) {
  return float_of(std::uint32_t{number.bits} << 16);
}
PACELINE_HD inline float value_of(Fp16 number) {
#ifdef __CUDA_ARCH__
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(number.bits));
  return value;
#else
  constexpr std::uint32_t rebias = (127 - 15) << 23;  // the difference of the exponents' biases
  const std::uint32_t magnitude = number.bits & 0x7fffU;
  const std::uint32_t sign = (number.bits & 0x8000U) << 16;
  const std::uint32_t normal = (magnitude << 13) + rebias + (magnitude >= 0x7c00 ? rebias : 0);
  const std::uint32_t subnormal = bits_of(static_cast<float>(magnitude) * 0x1p-24F);
  return float_of(sign | (magnitude < 0x400 ? subnormal : normal));
#endif
}

namespace detail {

#ifndef __CUDA_ARCH__
// The portable forms, for canonical numbers.
inline std::uint32_t fp16_bits(float value) {
  constexpr std::uint32_t rebias = (127 - 15) << 23;
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  const std::uint32_t sign = (bits & 0x80000000) >> 16;
  if (magnitude > infinity_bits) return 0x7e00;
  // From 65,520 on, half of a last place above the largest, the nearest is infinity.
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  // The last place of 0.5 in FP32 is the last place of subnormals of FP16, so that sum rounds.
  if (magnitude < 0x38800000) return sign | (bits_of(float_of(magnitude) + 0.5F) - bits_of(0.5F));
  return sign | ((magnitude - rebias + 0xfff + ((magnitude >> 13) & 1)) >> 13);
}
inline std::uint32_t bf16_bits(float value) {
  const std::uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffff) > infinity_bits) return 0x7fc0;
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}
#endif

// Two NaNs of the hardware replaced, in a word of two numbers.
PACELINE_HD inline std::uint32_t canonical_pair(std::uint32_t pair, float low, float high,
                                                std::uint32_t nan) {
  if (!(low == low)) pair = (pair & 0xffff0000U) | nan;
  if (!(high == high)) pair = (pair & 0x0000ffffU) | nan << 16;
  return pair;
}

}  // namespace detail

// Two numbers rounded to 16 bits, `low` in the lower half of the word; NaN is canonical.
PACELINE_HD inline std::uint32_t rounded_pair(Fp16, float low, float high) {
#ifdef __CUDA_ARCH__
  std::uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return detail::canonical_pair(pair, low, high, 0x7e00);
#else
  return detail::fp16_bits(low) | detail::fp16_bits(high) << 16;
#endif
}
PACELINE_HD inline std::uint32_t rounded_pair(Bf16, float low, float high) {
#ifdef __CUDA_ARCH__
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return detail::canonical_pair(pair, low, high, 0x7fc0);
#else
  return detail::bf16_bits(low) | detail::bf16_bits(high) << 16;
#endif
}

// Stores one number, rounded to the type; NaN becomes canonical.
PACELINE_HD inline void store(float* to, float value) {
  *to = canonical(value);
}
template <class Half>
PACELINE_HD void store(Half* to, float value) {
  to->bits = static_cast<std::uint16_t>(rounded_pair(Half{}, value, 0) & 0xffffU);
}

// 4 `words` bytes at once, at an address that is a multiple of as many.
template <unsigned words>
struct alignas(4 * words) Words {
  std::uint32_t word[words];
};

// The words at an address. A wrong one ends a kernel on a GPU, and so it ends the program on the host.
template <class Group>
PACELINE_HD Group* words_at(void* address) {
#ifndef __CUDA_ARCH__
  if (reinterpret_cast<std::uintptr_t>(address) % alignof(Group) != 0) __builtin_trap();
#endif
  return static_cast<Group*>(address);
}
template <class Group>
PACELINE_HD const Group* words_at(const void* address) {
  return words_at<Group>(const_cast<void*>(address));
}

// Loads and stores `count` numbers in accesses of 16 bytes (8 where that is all). The address is a
// multiple of it.
template <unsigned count>
PACELINE_HD void load(const float* from, float (&values)[count]) {
#pragma unroll
  for (unsigned i = 0; i < count; i += 4) {
    const auto group = *words_at<Words<4>>(from + i);
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) values[i + k] = float_of(group.word[k]);
  }
}
template <class Half, unsigned count>
PACELINE_HD void load(const Half* from, float (&values)[count]) {
  const auto group = *words_at<Words<count / 2>>(from);
#pragma unroll
  for (unsigned k = 0; k < count; k += 2) {
    values[k] = value_of(Half{static_cast<std::uint16_t>(group.word[k / 2] & 0xffffU)});
    values[k + 1] = value_of(Half{static_cast<std::uint16_t>(group.word[k / 2] >> 16)});
  }
}
template <unsigned count>
PACELINE_HD void store(float* to, const float (&values)[count]) {
#pragma unroll
  for (unsigned i = 0; i < count; i += 4) {
    Words<4> group;
#pragma unroll
    for (unsigned k = 0; k < 4; ++k) group.word[k] = bits_of(canonical(values[i + k]));
    *words_at<Words<4>>(to + i) = group;
  }
}
template <class Half, unsigned count>
PACELINE_HD void store(Half* to, const float (&values)[count]) {
  Words<count / 2> group;
#pragma unroll
  for (unsigned k = 0; k < count; k += 2)
    group.word[k / 2] = rounded_pair(Half{}, values[k], values[k + 1]);
  *words_at<Words<count / 2>>(to) = group;
}

}  // namespace paceline::runtime::cuda

// The arithmetic of gradients on CPUs: casts, sums, scaling, on plain arrays.
//
// Each kernel has a portable form and SIMD forms (AVX2 with F16C, AVX-512, AVX-512 FP16 and BF16),
// of which the best that the CPU has is chosen once, at run time. All forms give the same bits;
// tests hold each against the portable one. Arrays may have any length and alignment, and do not
// overlap unless said so. One thread; callers cut the work.
//
// Rounding is to nearest, ties to even, whatever the type; infinity stays infinity, and what is too
// large for FP16 becomes infinity. Subnormals are kept. Every NaN that is a result is the positive
// quiet NaN without payload (0x7fc00000, 0x7e00, 0x7fc0), as no two instruction sets agree on
// another; copies keep what they find. The thread has the default floating-point mode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "models/base/precision.h"

namespace paceline::runtime {

using models::NumberType;

// FP16 and BF16 values as their bits.
using Half = std::uint16_t;

[[nodiscard]] constexpr std::size_t bytes_of(NumberType type) {
  return type == NumberType::fp32 ? 4 : 2;
}

// target[i] = source[i] in FP32, rounded to `type`. For FP32 a copy.
void cast_from_fp32(std::span<const float> source, NumberType type, void* target);
// target[i] = source[i] exactly. For FP32 a copy.
void cast_to_fp32(const void* source, NumberType type, std::span<float> target);

// target[i] = round(target[i] + source[i]), the sum in FP32; both of `type`.
void add(NumberType type, void* target, const void* source, std::size_t count);
// target[i] = target[i] + source[i], source of `type`: for sums of more than two, which are rounded
// once, when they are done.
void add_to_fp32(std::span<float> target, const void* source, NumberType type);

// target[i] = target[i] * factor.
void scale(std::span<float> target, float factor);
// Whether no element is NaN or infinite.
[[nodiscard]] bool all_finite(std::span<const float> values);
// The sum of squares, accumulated in double, the same for every CPU: in 32 sums, element i in sum
// i % 32, which are then added in pairs, 16 apart, 8 apart, and so on.
[[nodiscard]] double sum_of_squares(std::span<const float> values);

// The name of the form that this CPU runs: "avx512-fp16", "avx512", "avx2-f16c", "portable".
[[nodiscard]] std::string_view kernel_form();

}  // namespace paceline::runtime

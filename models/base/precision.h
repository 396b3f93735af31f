// The number types of computation and of the wire, and the names by which users call them.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "models/base/units.h"

namespace paceline::models {

// The precision of computation. Mixed: 16 bits forward and backward, FP32 master weights and update. FP8: the
// same, with the matrix products of layers with weights in 8 bits, whose operands are scaled and cast for each
// product; all that is stored and sent stays in 16 bits (Micikevicius 2022, arXiv 2209.05433).
enum class Precision { fp32, mixed, fp8 };
inline constexpr std::array<std::pair<Precision, std::string_view>, 3> precisions = {
    {{Precision::fp32, "fp32"}, {Precision::mixed, "mixed"}, {Precision::fp8, "fp8"}}};

// Whether activations have 16 bits, and weights FP32 masters.
[[nodiscard]] constexpr bool has_masters(Precision precision) {
  return precision != Precision::fp32;
}

// The type of numbers that are stored or sent. BF16 is the upper half of an FP32.
enum class NumberType { fp32, fp16, bf16 };

// The type of gradients in an all-reduce.
using WireType = NumberType;

[[nodiscard]] std::string_view name(Precision precision);
[[nodiscard]] std::string_view name(NumberType type);
// Throw InputError that suggests the nearest name.
[[nodiscard]] Precision precision_from_name(std::string_view text);
// The same of what is computed on this machine, where FP8 is refused.
[[nodiscard]] Precision computed_precision_from_name(std::string_view text);
[[nodiscard]] WireType wire_type_from_name(std::string_view text);

// The type of gradients in an all-reduce where nobody says it: FP16 for mixed precision, else FP32.
[[nodiscard]] constexpr WireType default_wire(Precision precision) {
  return has_masters(precision) ? WireType::fp16 : WireType::fp32;
}

[[nodiscard]] constexpr Bytes element_size(NumberType type) {
  return Bytes{type == NumberType::fp32 ? 4.0 : 2.0};
}
// The size of an activation, and of a gradient as the backward pass produces it.
[[nodiscard]] constexpr Bytes element_size(Precision precision) {
  return Bytes{precision == Precision::fp32 ? 4.0 : 2.0};
}

}  // namespace paceline::models

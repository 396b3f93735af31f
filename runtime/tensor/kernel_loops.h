// The loops of the kernels, for any form. Internal: included by the translation unit of each form,
// with an `Isa` from its anonymous namespace, so that no instance is shared between units that are
// compiled for different instructions.
//
// An Isa has:
//   Floats                       a vector of `lanes` FP32 numbers
//   broadcast(float), add, multiply   as IEEE 754 says
//   canonical(Floats)            every NaN replaced by 0x7fc00000
//   finite(Floats)               whether no lane is NaN or infinite
//   Fp32, Fp16, Bf16             formats: `bytes`; load and store of a vector at any address, and
//                                of its first `count` lanes; the rest is loaded as 0. Stores round,
//                                and take canonical numbers only.
//   SquareSums                   zero-initialized sums of squares in 32 double lanes: element i
//                                goes to lane i % 32; accumulate(group, vector) adds vector `group`
//                                of 32 / lanes; store(double*).
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/tensor/kernel_forms.h"

namespace paceline::runtime::kernel_loops {

// Lanes of the sum of squares, for every form: the order of additions is part of the contract.
inline constexpr std::size_t square_lanes = 32;

inline constexpr std::size_t vector_bytes = 64;

// How many elements of `bytes` until the address is a multiple of a cache line, if it ever is.
template <class Isa>
std::size_t elements_to_alignment(const void* address, std::size_t bytes) {
  const std::size_t past = reinterpret_cast<std::uintptr_t>(address) % vector_bytes;
  return past % bytes == 0 ? (vector_bytes - past) % vector_bytes / bytes : 0;
}

// target[i] = operation(target[i], source[i]) over vectors; the target is not read by an operation
// that ignores it. Stores that cross cache lines cost most, so the target is aligned first.
template <class Isa, class Target, class Source, class Operation>
void map(void* target_memory, const void* source_memory, std::size_t count, Operation operation) {
  auto* target = static_cast<unsigned char*>(target_memory);
  const auto* source = static_cast<const unsigned char*>(source_memory);
  const auto part = [&](std::size_t elements) {
    while (elements > 0) {
      const std::size_t now = elements < Isa::lanes ? elements : Isa::lanes;
      Target::store(target, operation(Target::load(target, now), Source::load(source, now)), now);
      target += now * Target::bytes;
      source += now * Source::bytes;
      elements -= now;
    }
  };
  if constexpr (Isa::lanes > 1) {
    if (count >= 4 * Isa::lanes) {
      const std::size_t head = elements_to_alignment<Isa>(target, Target::bytes);
      part(head);
      count -= head;
    }
  }
  const std::size_t vectors = count / Isa::lanes;
  for (std::size_t i = 0; i < vectors; ++i) {
    Target::store(target + i * Isa::lanes * Target::bytes,
                  operation(Target::load(target + i * Isa::lanes * Target::bytes),
                            Source::load(source + i * Isa::lanes * Source::bytes)));
  }
  target += vectors * Isa::lanes * Target::bytes;
  source += vectors * Isa::lanes * Source::bytes;
  part(count - vectors * Isa::lanes);
}

template <class Isa, class Target, class Source>
void cast(void* target, const void* source, std::size_t count) {
  using Floats = typename Isa::Floats;
  map<Isa, Target, Source>(target, source, count,
                           [](Floats, Floats value) { return Isa::canonical(value); });
}

template <class Isa, class Target, class Source>
void add(void* target, const void* source, std::size_t count) {
  using Floats = typename Isa::Floats;
  map<Isa, Target, Source>(target, source, count, [](Floats sum, Floats value) {
    return Isa::canonical(Isa::add(sum, value));
  });
}

template <class Isa>
void scale(void* target, float factor, std::size_t count) {
  using Floats = typename Isa::Floats;
  const Floats factors = Isa::broadcast(factor);
  map<Isa, typename Isa::Fp32, typename Isa::Fp32>(
      target, target, count,
      [factors](Floats value, Floats) { return Isa::canonical(Isa::multiply(value, factors)); });
}

template <class Isa>
bool all_finite(const void* values, std::size_t count) {
  using Format = typename Isa::Fp32;
  const auto* from = static_cast<const unsigned char*>(values);
  const std::size_t vectors = count / Isa::lanes;
  for (std::size_t i = 0; i < vectors; ++i) {
    if (!Isa::finite(Format::load(from + i * Isa::lanes * Format::bytes))) return false;
  }
  const std::size_t rest = count - vectors * Isa::lanes;
  return rest == 0 || Isa::finite(Format::load(from + vectors * Isa::lanes * Format::bytes, rest));
}

template <class Isa>
double sum_of_squares(const void* values, std::size_t count) {
  using Format = typename Isa::Fp32;
  constexpr std::size_t groups = square_lanes / Isa::lanes;
  const auto* from = static_cast<const unsigned char*>(values);
  typename Isa::SquareSums sums;
  while (count >= square_lanes) {
    for (std::size_t group = 0; group < groups; ++group) {
      sums.accumulate(group, Format::load(from + group * Isa::lanes * Format::bytes));
    }
    from += square_lanes * Format::bytes;
    count -= square_lanes;
  }
  for (std::size_t group = 0; group < groups && count > 0; ++group) {
    const std::size_t now = count < Isa::lanes ? count : Isa::lanes;
    sums.accumulate(group, Format::load(from, now));
    from += now * Format::bytes;
    count -= now;
  }
  double lanes[square_lanes];
  sums.store(lanes);
  for (std::size_t half = square_lanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0] == lanes[0] ? lanes[0] : __builtin_nan("");
}

template <class Isa>
constexpr KernelForm form(const char* name) {
  using Fp32 = typename Isa::Fp32;
  using Fp16 = typename Isa::Fp16;
  using Bf16 = typename Isa::Bf16;
  return {.name = name,
          .fp16_from_fp32 = &cast<Isa, Fp16, Fp32>,
          .bf16_from_fp32 = &cast<Isa, Bf16, Fp32>,
          .fp32_from_fp16 = &cast<Isa, Fp32, Fp16>,
          .fp32_from_bf16 = &cast<Isa, Fp32, Bf16>,
          .add_fp32 = &add<Isa, Fp32, Fp32>,
          .add_fp16 = &add<Isa, Fp16, Fp16>,
          .add_bf16 = &add<Isa, Bf16, Bf16>,
          .add_fp16_to_fp32 = &add<Isa, Fp32, Fp16>,
          .add_bf16_to_fp32 = &add<Isa, Fp32, Bf16>,
          .scale = &scale<Isa>,
          .all_finite = &all_finite<Isa>,
          .sum_of_squares = &sum_of_squares<Isa>};
}

}  // namespace paceline::runtime::kernel_loops

// Tests: tests/runtime/network_modes_test.cc.
#include "runtime/network/fp16.h"

#include <algorithm>
#include <array>

#include "runtime/tensor/kernels.h"

namespace paceline::runtime {

void round_to_fp16(std::span<float> values) {
  // Its FP16 form stays in the first cache.
  constexpr std::size_t part = 4096;
  const auto parts = static_cast<std::ptrdiff_t>((values.size() + part - 1) / part);
#pragma omp parallel for schedule(static)
  for (std::ptrdiff_t i = 0; i < parts; ++i) {
    const std::size_t first = static_cast<std::size_t>(i) * part;
    const std::span<float> rounded = values.subspan(first, std::min(part, values.size() - first));
    std::array<Half, part> halves;  // filled up to the part's size
    cast_from_fp32(rounded, NumberType::fp16, halves.data());
    cast_to_fp32(halves.data(), NumberType::fp16, rounded);
  }
}

}  // namespace paceline::runtime

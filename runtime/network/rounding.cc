// Tests: tests/runtime/network_modes_test.cc.
#include "runtime/network/rounding.h"

#include <algorithm>
#include <array>

#include "models/base/to_size.h"
#include "runtime/tensor/kernels.h"

namespace paceline::runtime {

void round_to(models::NumberType type, std::span<float> values) {
  if (type == NumberType::fp32) return;
  static_cast<void>(kernel_form());  // Throws here, if at all: nothing may leave the loop below.
  // The 16-bit copy of this many numbers stays in the first cache.
  constexpr std::size_t part = 4096;
  const auto parts = static_cast<std::ptrdiff_t>((values.size() + part - 1) / part);
#pragma omp parallel for schedule(static)
  for (std::ptrdiff_t i = 0; i < parts; ++i) {
    const std::size_t first = to_size(i) * part;
    const std::span<float> rounded = values.subspan(first, std::min(part, values.size() - first));
    std::array<Half, part> halves;  // the last part fills only its start
    cast_from_fp32(rounded, type, halves.data());
    cast_to_fp32(halves.data(), type, rounded);
  }
}

}  // namespace paceline::runtime

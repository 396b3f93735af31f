// Tests: tests/runtime/network_parts_test.cc.
#include "runtime/network/dropout.h"

#include <cstddef>

#include "models/base/seeds.h"

namespace paceline::runtime {
void drop_out(const DropoutMask& mask, std::span<const float> source, std::span<float> target) {
  const std::uint64_t start =
      mixed_seed(mixed_seed(mask.seed, 0), static_cast<std::uint64_t>(mask.layer));
  // Of 2^53 equally likely draws, the lowest are dropped.
  const auto dropped = static_cast<std::uint64_t>(mask.probability * 0x1p53);
  const double kept = 1 - mask.probability;
  const float factor = kept > 0 ? static_cast<float>(1 / kept) : 0.0F;
  const auto count = static_cast<std::ptrdiff_t>(source.size());
#pragma omp parallel for schedule(static)
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const std::uint64_t draw = mixed_seed(start, index) >> 11;
    target[index] = draw < dropped ? 0.0F : factor * source[index];
  }
}

}  // namespace paceline::runtime

// Tests: tests/runtime/network_parts_test.cc.
#include "runtime/network/dropout.h"

#include <cstddef>

#include "models/base/seeds.h"
#include "models/base/to_size.h"

namespace paceline::runtime {

std::uint64_t dropout_seed(std::uint64_t job_seed, std::int64_t iteration, int rank) {
  const std::uint64_t of_job = mixed_seed(job_seed, 0);
  const std::uint64_t of_iteration = mixed_seed(of_job, static_cast<std::uint64_t>(iteration));
  return mixed_seed(of_iteration, static_cast<std::uint64_t>(rank));
}

void drop_out(const DropoutMask& mask, std::span<const float> source, std::span<float> target) {
  const std::uint64_t start =
      mixed_seed(mixed_seed(mask.seed, 0), static_cast<std::uint64_t>(mask.layer));
  // There are 2^53 equally likely draws; the lowest are dropped.
  const auto dropped = static_cast<std::uint64_t>(mask.probability * 0x1p53);
  const double kept = 1 - mask.probability;
  const float factor = kept > 0 ? static_cast<float>(1 / kept) : 0.0F;
  const auto count = static_cast<std::ptrdiff_t>(source.size());
#pragma omp parallel for schedule(static)
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const auto index = to_size(i);
    const std::uint64_t draw = mixed_seed(start, index) >> 11;
    target[index] = draw < dropped ? 0.0F : factor * source[index];
  }
}

}  // namespace paceline::runtime

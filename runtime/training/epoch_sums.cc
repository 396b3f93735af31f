// Tests: tests/runtime/training/epoch_sums_test.cc.
#include "runtime/training/epoch_sums.h"

#include <algorithm>
#include <bit>

namespace paceline::runtime {
namespace {

using Numbers = std::array<double, 6>;
using Floats = std::array<float, stored_sums_floats>;

}  // namespace

Floats stored(const EpochSums& sums) {
  return std::bit_cast<Floats>(Numbers{sums.loss, sums.correct, sums.labels, sums.exposed.value(),
                                       sums.input.value(), sums.time.value()});
}

EpochSums sums_of(std::span<const float, stored_sums_floats> stored) {
  Floats floats = {};
  std::ranges::copy(stored, floats.begin());
  const auto numbers = std::bit_cast<Numbers>(floats);
  return {.loss = numbers[0],
          .correct = numbers[1],
          .labels = numbers[2],
          .exposed = Seconds{numbers[3]},
          .input = Seconds{numbers[4]},
          .time = Seconds{numbers[5]}};
}

}  // namespace paceline::runtime

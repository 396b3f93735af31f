// Tests: tests/runtime/training/epoch_sums_test.cc.
#include "runtime/training/epoch_sums.h"

#include <algorithm>
#include <bit>

namespace paceline::runtime {
namespace {

using Numbers = std::array<double, 6>;
using Floats = std::array<float, stored_sums_floats>;

}  // namespace

EpochSums shared_out(std::span<const EpochSums> of_ranks, int ranks) {
  const auto share = 1.0 / ranks;
  const double mean = 1 / static_cast<double>(of_ranks.size());
  EpochSums sum;
  for (const EpochSums& of : of_ranks) {
    sum.loss += share * of.loss;
    sum.correct += share * of.correct;
    sum.labels += share * of.labels;
    sum.exposed += mean * of.exposed;
    sum.input += mean * of.input;
    sum.time += mean * of.time;
  }
  return sum;
}

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

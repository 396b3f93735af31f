// The factors by which the ranks compute longer than predicted, drawn iteration by iteration.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/base/random.h"
#include "models/straggler/stragglers.h"

namespace paceline::simulator {

class ComputeFactors {
 public:
  // Keeps a reference to `stragglers`. Slow ranks must be below `ranks`. The same seed gives the
  // same factors, whatever they are used for.
  ComputeFactors(const models::Stragglers& stragglers, int ranks, std::uint64_t seed);

  // The factors of the next iteration, one for each rank. O(ranks).
  [[nodiscard]] std::span<const double> next();

 private:
  [[nodiscard]] double draw();

  const models::Stragglers& stragglers_;
  Random random_;
  double normal_mean_ = 1;  // of what is left of a normal spread above 0
  std::vector<double> factors_;
};

// The `wanted`-th smallest of `values`, counted from 1. Reorders them. O(values).
[[nodiscard]] double order_statistic(std::vector<double>& values, int wanted);

}  // namespace paceline::simulator

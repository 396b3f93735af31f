// What tests of training on CUDA devices share.
#pragma once

#include <cmath>
#include <vector>

#include "tests/support/training_job.h"

namespace paceline::test {

// How far the weights of two trainings are apart, over how far training moved them from `start`.
inline double distance(const std::vector<float>& a, const std::vector<float>& b,
                       const std::vector<float>& start) {
  double apart = 0;
  double moved = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    apart += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    moved += std::pow(static_cast<double>(b[i]) - static_cast<double>(start[i]), 2);
  }
  return std::sqrt(apart / moved);
}

inline std::vector<float> start_of(const Job& job) {
  return runtime::initial_weights(job.network(), job.initial());
}

}  // namespace paceline::test

// Numbers of a tensor while a graph is interpreted: FP32, dense, in the order N H W C, wherever and
// in whatever type and order the tensor stands in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "tests/support/cuda_on_host/cudnn/graph.h"

namespace cuda_on_host::cudnn {

struct Values {
  std::int64_t n = 1;
  std::int64_t c = 1;
  std::int64_t h = 1;
  std::int64_t w = 1;
  std::vector<float> data = {};

  // Zeros of the tensor's shape.
  static Values of(const Tensor& tensor);
  // So many pixels, each of c numbers.
  [[nodiscard]] std::int64_t pixels() const { return n * h * w; }
  [[nodiscard]] float* at(std::int64_t i, std::int64_t y, std::int64_t x) {
    return data.data() + ((i * h + y) * w + x) * c;
  }
  [[nodiscard]] const float* at(std::int64_t i, std::int64_t y, std::int64_t x) const {
    return data.data() + ((i * h + y) * w + x) * c;
  }
};

// By unique id.
using AllValues = std::map<std::int64_t, Values>;

[[nodiscard]] Values load(const Tensor& tensor, const std::byte* memory);
void store(const Tensor& tensor, const Values& values, std::byte* memory);
// Rounds to the nearest number of the type, to the even one of two.
void round_to(cudnnDataType_t type, std::vector<float>& values);
// To 10 bits of mantissa, as tensor cores take FP32.
void round_to_tf32(std::vector<float>& values);

}  // namespace cuda_on_host::cudnn

// The product of matrices on which convolutions rest.
#pragma once

#include <cstdint>

namespace cuda_on_host::cudnn {

// A matrix whose element (i, j) is data[i * row + j * column].
struct Matrix {
  const float* data = nullptr;
  std::int64_t row = 0;
  std::int64_t column = 1;
};

// c += a b, where c has m rows of n numbers, c_row apart, and the sum has k terms. The rows of b are
// dense. Each sum is formed in FP32, in order. The result does not depend on the processor: where it
// has AVX2, that only takes more numbers at a time, and nothing is fused.
void add_product(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const float* b,
                 std::int64_t b_row, float* c, std::int64_t c_row);

}  // namespace cuda_on_host::cudnn

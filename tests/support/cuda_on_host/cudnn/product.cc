#include "tests/support/cuda_on_host/cudnn/product.h"

#include <algorithm>
#include <cstring>
#include <vector>

// The sanitizers' code runs before a clone could be chosen.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PACELINE_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define PACELINE_CLONES
#endif

namespace cuda_on_host::cudnn {
namespace {

// Eight numbers at a time, which the compiler makes of narrower ones where there is no AVX.
using Eight = float __attribute__((vector_size(32)));
constexpr std::int64_t vectors = 2;
constexpr std::int64_t columns = 8 * vectors;

template <int rows>
[[gnu::always_inline]] inline void add_block(std::int64_t n, std::int64_t k, const Matrix& a,
                                             const float* panel, float* c, std::int64_t c_row) {
  Eight sum[rows][vectors] = {};
  for (std::int64_t p = 0; p < k; ++p) {
    Eight b[vectors];
    std::memcpy(b, panel + p * columns, sizeof b);
    for (int i = 0; i < rows; ++i) {
      const float factor = a.data[i * a.row + p * a.column];
      for (int j = 0; j < vectors; ++j) sum[i][j] += factor * b[j];
    }
  }
  for (int i = 0; i < rows; ++i) {
    float row[columns];
    std::memcpy(row, sum[i], sizeof row);
    for (std::int64_t j = 0; j < n; ++j) c[i * c_row + j] += row[j];
  }
}

PACELINE_CLONES void add_rows(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a,
                              const float* panel, float* c, std::int64_t c_row) {
  std::int64_t i = 0;
  for (; i + 4 <= m; i += 4)
    add_block<4>(n, k, {a.data + i * a.row, a.row, a.column}, panel, c + i * c_row, c_row);
  for (; i < m; ++i)
    add_block<1>(n, k, {a.data + i * a.row, a.row, a.column}, panel, c + i * c_row, c_row);
}

}  // namespace

void add_product(std::int64_t m, std::int64_t n, std::int64_t k, const Matrix& a, const float* b,
                 std::int64_t b_row, float* c, std::int64_t c_row) {
  std::vector<float> panel(static_cast<std::size_t>(k * columns));
  for (std::int64_t j = 0; j < n; j += columns) {
    const std::int64_t width = std::min(columns, n - j);
    std::fill(panel.begin(), panel.end(), 0.F);
    for (std::int64_t p = 0; p < k; ++p)
      std::copy_n(b + p * b_row + j, width, panel.begin() + p * columns);
    add_rows(m, width, k, a, panel.data(), c + j, c_row);
  }
}

}  // namespace cuda_on_host::cudnn

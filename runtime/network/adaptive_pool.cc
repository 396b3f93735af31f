// Tests: tests/runtime/network_layers_test.cc.
#include "runtime/network/adaptive_pool.h"

#include <algorithm>

namespace paceline::runtime {
namespace {

struct Window {
  std::int64_t first = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t size() const { return end - first; }
};

Window window(std::int64_t index, std::int64_t in, std::int64_t out) {
  return {index * in / out, ((index + 1) * in + out - 1) / out};
}

// Calls f(index in, index out, elements of the window) for each element of each window.
template <class F>
void for_each_element(const AdaptivePool& pool, std::int64_t plane, F f) {
  for (std::int64_t y = 0; y < pool.out.height; ++y) {
    const Window rows = window(y, pool.in.height, pool.out.height);
    for (std::int64_t x = 0; x < pool.out.width; ++x) {
      const Window columns = window(x, pool.in.width, pool.out.width);
      const std::int64_t to = (plane * pool.out.height + y) * pool.out.width + x;
      for (std::int64_t row = rows.first; row < rows.end; ++row)
        for (std::int64_t column = columns.first; column < columns.end; ++column)
          f(static_cast<std::size_t>((plane * pool.in.height + row) * pool.in.width + column),
            static_cast<std::size_t>(to), rows.size() * columns.size());
    }
  }
}

}  // namespace

void AdaptivePool::forward(std::span<const float> source, std::span<float> target) const {
  std::fill(target.begin(), target.end(), 0.0F);
#pragma omp parallel for schedule(static)
  for (std::int64_t plane = 0; plane < planes; ++plane)
    for_each_element(*this, plane, [&](std::size_t from, std::size_t to, std::int64_t elements) {
      target[to] += source[from] / static_cast<float>(elements);
    });
}

void AdaptivePool::backward(std::span<const float> gradient, std::span<float> target) const {
  std::fill(target.begin(), target.end(), 0.0F);
#pragma omp parallel for schedule(static)
  for (std::int64_t plane = 0; plane < planes; ++plane)
    for_each_element(*this, plane, [&](std::size_t to, std::size_t from, std::int64_t elements) {
      target[to] += gradient[from] / static_cast<float>(elements);
    });
}

}  // namespace paceline::runtime

// Tests: tests/runtime/network_layers_test.cc, network_parts_test.cc.
#include "runtime/network/uneven_pool.h"

#include <algorithm>

#include "models/base/to_size.h"

namespace paceline::runtime {
namespace {

// Calls f(index in, index out, count of the window) for each element of each window.
template <class F>
void for_each_element(const UnevenPool& pool, std::int64_t plane, F f) {
  const auto out_height = static_cast<std::int64_t>(pool.rows.size());
  const auto out_width = static_cast<std::int64_t>(pool.columns.size());
  for (std::int64_t y = 0; y < out_height; ++y) {
    const PoolWindow& rows = pool.rows[to_size(y)];
    for (std::int64_t x = 0; x < out_width; ++x) {
      const PoolWindow& columns = pool.columns[to_size(x)];
      const std::int64_t to = (plane * out_height + y) * out_width + x;
      for (std::int64_t row = rows.first; row < rows.end; ++row)
        for (std::int64_t column = columns.first; column < columns.end; ++column)
          f(to_size((plane * pool.in.height + row) * pool.in.width + column), to_size(to),
            rows.count * columns.count);
    }
  }
}

// Adds up in each element of `target` its shares of `source`: of the input in the output forward,
// and of the output's gradient in the input's backward.
template <bool forward>
void add_shares(const UnevenPool& pool, std::span<const float> source, std::span<float> target) {
  std::fill(target.begin(), target.end(), 0.0F);
#pragma omp parallel for schedule(static)
  for (std::int64_t plane = 0; plane < pool.planes; ++plane)
    for_each_element(pool, plane, [&](std::size_t in, std::size_t out, std::int64_t elements) {
      target[forward ? out : in] += source[forward ? in : out] / static_cast<float>(elements);
    });
}

}  // namespace

std::vector<PoolWindow> adaptive_windows(std::int64_t in, std::int64_t out) {
  std::vector<PoolWindow> windows;
  for (std::int64_t i = 0; i < out; ++i) {
    const std::int64_t first = i * in / out;
    const std::int64_t end = ((i + 1) * in + out - 1) / out;
    windows.push_back({.first = first, .end = end, .count = end - first});
  }
  return windows;
}

std::vector<PoolWindow> padded_windows(const PoolExtent& e) {
  std::vector<PoolWindow> windows;
  for (std::int64_t i = 0; i < e.out; ++i) {
    const std::int64_t start = i * e.stride - e.padding;
    const std::int64_t end = std::min(start + e.kernel, e.in + e.padding);
    windows.push_back({.first = std::clamp<std::int64_t>(start, 0, e.in),
                       .end = std::clamp<std::int64_t>(end, 0, e.in),
                       .count = end - start});
  }
  return windows;
}

void UnevenPool::forward(std::span<const float> source, std::span<float> target) const {
  add_shares<true>(*this, source, target);
}

void UnevenPool::backward(std::span<const float> gradient, std::span<float> target) const {
  add_shares<false>(*this, gradient, target);
}

}  // namespace paceline::runtime

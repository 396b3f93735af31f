// Average pooling where windows are not all alike: they differ in size, overlap unevenly, or reach
// beyond the input.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/network/layer.h"

namespace paceline::runtime {

// The rows, or columns, of the input that one row, or column, of the output is the mean of.
struct PoolWindow {
  std::int64_t first = 0;
  std::int64_t end = 0;    // one behind the last
  std::int64_t count = 0;  // that the mean divides by: more than end - first where padding counts
  bool operator==(const PoolWindow&) const = default;
};

// `out` windows over `in` rows, as PyTorch's adaptive_avg_pool2d: window i covers rows
// floor(i in / out) to ceil((i + 1) in / out) - 1.
[[nodiscard]] std::vector<PoolWindow> adaptive_windows(std::int64_t in, std::int64_t out);

// As PyTorch's avg_pool2d with count_include_pad: a mean divides by those rows of the window that
// lie in the input or in its padding, which is `padding` rows on either side. With ceil_mode the
// last window may reach further, and what is beyond the padding does not count.
struct PoolExtent {
  std::int64_t in = 1;
  std::int64_t out = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
};
[[nodiscard]] std::vector<PoolWindow> padded_windows(const PoolExtent& extent);

struct UnevenPool {
  std::int64_t planes = 1;  // samples x channels
  models::Extent in;
  std::vector<PoolWindow> rows;
  std::vector<PoolWindow> columns;

  // The first computes means, from (planes, in) to (planes, rows, columns); the second brings the
  // gradient back. Both write all of `target`.
  void forward(std::span<const float> source, std::span<float> target) const;
  void backward(std::span<const float> gradient, std::span<float> target) const;
};

}  // namespace paceline::runtime

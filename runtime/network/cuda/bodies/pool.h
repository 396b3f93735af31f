// Pools. A gradient is gathered: each element of the input looks up the windows that cover it, so
// that no two threads write to one place and the order of sums is fixed.
#pragma once

#include "runtime/network/cuda/bodies/convolution.h"

namespace paceline::runtime::cuda {

// The first largest element of each window, and where in the window it stood; what lies outside the
// input does not count, and NaN is larger than all. One element of y each.
struct MaxPoolForward {
  Windows windows;
  Tensor x;
  Tensor y;
  std::int32_t* where = nullptr;  // of each element of y: kernel row * kernel width + column

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    const Place to = place_of(y, i);
    float largest = 0;
    std::int32_t found = -1;
    for (std::int64_t r = 0; r < windows.kernel_height; ++r) {
      const std::int64_t row = windows.row(to.y, r);
      if (!is_inside(row, x.height)) continue;
      for (std::int64_t s = 0; s < windows.kernel_width; ++s) {
        const std::int64_t column = windows.column(to.x, s);
        if (!is_inside(column, x.width)) continue;
        const float value = x.at(to.image, row, column, to.channel);
        if (found >= 0 && !(value > largest) && value == value) continue;
        largest = value;
        found = static_cast<std::int32_t>(r * windows.kernel_width + s);
        if (value != value) {
          y.set(i, value);
          where[i] = found;
          return;
        }
      }
    }
    y.set(i, largest);
    where[i] = found;
  }
  [[nodiscard]] std::uint64_t count() const { return static_cast<std::uint64_t>(y.elements()); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, x);
    writes(visitor, y);
    visitor.write(where, count());
  }
};

// One element of x each.
struct MaxPoolDataGradient {
  Windows windows;
  Tensor dy;
  const std::int32_t* where = nullptr;
  Tensor dx;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    const Place to = place_of(dx, i);
    float sum = 0;
    for (std::int64_t r = 0; r < windows.kernel_height; ++r) {
      const std::int64_t y = windows.output_row(to.y, r, dy.height);
      if (y < 0) continue;
      for (std::int64_t s = 0; s < windows.kernel_width; ++s) {
        const std::int64_t x = windows.output_column(to.x, s, dy.width);
        if (x < 0) continue;
        const std::int64_t from = dy.index(to.image, y, x, to.channel);
        if (where[from] == r * windows.kernel_width + s) sum += dy.at(from);
      }
    }
    dx.set(i, sum);
  }
  [[nodiscard]] std::uint64_t count() const { return static_cast<std::uint64_t>(dx.elements()); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, dy);
    visitor.read(where, static_cast<std::size_t>(dy.elements()));
    writes(visitor, dx);
  }
};

// The rows (or columns) of the input under one row of the output of an average pool, and what the
// mean divides by (runtime/network/uneven_pool.h); and, by row of the input, the rows of the output
// whose windows cover it.
struct MeanWindow {
  std::int32_t first = 0;
  std::int32_t end = 0;
  std::int32_t count = 1;
};
struct CoveringWindows {
  std::int32_t first = 0;
  std::int32_t end = 0;
};
struct MeanWindows {
  const MeanWindow* rows = nullptr;
  const MeanWindow* columns = nullptr;
  const CoveringWindows* over_rows = nullptr;
  const CoveringWindows* over_columns = nullptr;
};

// Means of windows. One element of y each.
struct AveragePoolForward {
  MeanWindows windows;
  Tensor x;
  Tensor y;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    const Place to = place_of(y, i);
    const MeanWindow rows = windows.rows[to.y];
    const MeanWindow columns = windows.columns[to.x];
    float sum = 0;
    for (std::int64_t row = rows.first; row < rows.end; ++row)
      for (std::int64_t column = columns.first; column < columns.end; ++column)
        sum += x.at(to.image, row, column, to.channel);
    y.set(i, sum / static_cast<float>(rows.count * columns.count));
  }
  [[nodiscard]] std::uint64_t count() const { return static_cast<std::uint64_t>(y.elements()); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, x);
    visitor.read(windows.rows, static_cast<std::size_t>(y.height));
    visitor.read(windows.columns, static_cast<std::size_t>(y.width));
    writes(visitor, y);
  }
};

// One element of x each.
struct AveragePoolDataGradient {
  MeanWindows windows;
  Tensor dy;
  Tensor dx;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    const Place to = place_of(dx, i);
    const CoveringWindows rows = windows.over_rows[to.y];
    const CoveringWindows columns = windows.over_columns[to.x];
    float sum = 0;
    for (std::int64_t y = rows.first; y < rows.end; ++y)
      for (std::int64_t x = columns.first; x < columns.end; ++x)
        sum += dy.at(to.image, y, x, to.channel) /
               static_cast<float>(windows.rows[y].count * windows.columns[x].count);
    dx.set(i, sum);
  }
  [[nodiscard]] std::uint64_t count() const { return static_cast<std::uint64_t>(dx.elements()); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, dy);
    visitor.read(windows.rows, static_cast<std::size_t>(dy.height));
    visitor.read(windows.columns, static_cast<std::size_t>(dy.width));
    visitor.read(windows.over_rows, static_cast<std::size_t>(dx.height));
    visitor.read(windows.over_columns, static_cast<std::size_t>(dx.width));
    writes(visitor, dx);
  }
};

}  // namespace paceline::runtime::cuda

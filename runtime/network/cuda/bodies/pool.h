// Pools. A gradient is gathered: each element of the input looks up the windows that cover it, so
// that no two threads write to one place and the order of sums is fixed.
#pragma once

#include "runtime/network/cuda/bodies/convolution.h"

namespace paceline::runtime::cuda {

// Numbers of places, loaded and stored as those of a tensor.
template <unsigned n>
PACELINE_HD void load_places(const std::int32_t* from, std::int32_t (&places)[n]) {
  if constexpr (n == 1) {
    places[0] = *from;
  } else {
#pragma unroll
    for (unsigned i = 0; i < n; i += 4) {
      const auto group = *words_at<Words<4>>(from + i);
#pragma unroll
      for (unsigned k = 0; k < 4; ++k) places[i + k] = static_cast<std::int32_t>(group.word[k]);
    }
  }
}
template <unsigned n>
PACELINE_HD void store_places(std::int32_t* to, const std::int32_t (&places)[n]) {
  if constexpr (n == 1) {
    *to = places[0];
  } else {
#pragma unroll
    for (unsigned i = 0; i < n; i += 4) {
      Words<4> group;
#pragma unroll
      for (unsigned k = 0; k < 4; ++k) group.word[k] = static_cast<std::uint32_t>(places[i + k]);
      *words_at<Words<4>>(to + i) = group;
    }
  }
}

// The first largest element of each window, and where in the window it stood; what lies outside the
// input does not count, and NaN is larger than all.
struct MaxPoolForward {
  Windows windows;
  Tensor x;
  Tensor y;
  std::int32_t* where = nullptr;  // of each element of y: kernel row * kernel width + column

  PACELINE_HD void operator()(std::uint64_t piece) const { take_piece(*this, piece); }
  template <unsigned n>
  PACELINE_HD void take(std::int64_t i) const {
    const Place to = place_of(y, i);
    float largest[n] = {};
    std::int32_t found[n];
#pragma unroll
    for (unsigned k = 0; k < n; ++k) found[k] = -1;
    for (std::int64_t r = 0; r < windows.kernel_height; ++r) {
      const std::int64_t row = windows.row(to.y, r);
      if (!is_inside(row, x.height)) continue;
      for (std::int64_t s = 0; s < windows.kernel_width; ++s) {
        const std::int64_t column = windows.column(to.x, s);
        if (!is_inside(column, x.width)) continue;
        float values[n];
        x.load(x.index(to.image, row, column, to.channel), values);
#pragma unroll
        for (unsigned k = 0; k < n; ++k) {
          const bool is_larger = values[k] > largest[k] || values[k] != values[k];
          if (found[k] >= 0 && (!is_larger || largest[k] != largest[k])) continue;
          largest[k] = values[k];
          found[k] = static_cast<std::int32_t>(r * windows.kernel_width + s);
        }
      }
    }
    y.store(i, largest);
    store_places(where + i, found);
  }
  [[nodiscard]] PACELINE_HD std::int64_t elements() const {
    return y.elements();
  }
  [[nodiscard]] PACELINE_HD bool is_wide() const {
    return x.has_wide_pixels() && y.is_aligned() && cuda::is_aligned(where);
  }
  [[nodiscard]] std::uint64_t count() const {
    return count_pieces(*this);
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, x);
    writes(visitor, y);
    visitor.write(where, static_cast<std::size_t>(y.elements()));
  }
};

struct MaxPoolDataGradient {
  Windows windows;
  Tensor dy;
  const std::int32_t* where = nullptr;
  Tensor dx;

  PACELINE_HD void operator()(std::uint64_t piece) const { take_piece(*this, piece); }
  template <unsigned n>
  PACELINE_HD void take(std::int64_t i) const {
    const Place to = place_of(dx, i);
    float sums[n] = {};
    for (std::int64_t r = 0; r < windows.kernel_height; ++r) {
      const std::int64_t y = windows.output_row(to.y, r, dy.height);
      if (y < 0) continue;
      for (std::int64_t s = 0; s < windows.kernel_width; ++s) {
        const std::int64_t x = windows.output_column(to.x, s, dy.width);
        if (x < 0) continue;
        const std::int64_t from = dy.index(to.image, y, x, to.channel);
        float values[n];
        std::int32_t places[n];
        dy.load(from, values);
        load_places(where + from, places);
#pragma unroll
        for (unsigned k = 0; k < n; ++k)
          if (places[k] == r * windows.kernel_width + s) sums[k] += values[k];
      }
    }
    dx.store(i, sums);
  }
  [[nodiscard]] PACELINE_HD std::int64_t elements() const {
    return dx.elements();
  }
  [[nodiscard]] PACELINE_HD bool is_wide() const {
    return dx.has_wide_pixels() && dy.is_aligned() && cuda::is_aligned(where);
  }
  [[nodiscard]] std::uint64_t count() const {
    return count_pieces(*this);
  }
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

// Means of windows.
struct AveragePoolForward {
  MeanWindows windows;
  Tensor x;
  Tensor y;

  PACELINE_HD void operator()(std::uint64_t piece) const { take_piece(*this, piece); }
  template <unsigned n>
  PACELINE_HD void take(std::int64_t i) const {
    const Place to = place_of(y, i);
    const MeanWindow rows = windows.rows[to.y];
    const MeanWindow columns = windows.columns[to.x];
    float sums[n] = {};
    for (std::int64_t row = rows.first; row < rows.end; ++row) {
      for (std::int64_t column = columns.first; column < columns.end; ++column) {
        float values[n];
        x.load(x.index(to.image, row, column, to.channel), values);
#pragma unroll
        for (unsigned k = 0; k < n; ++k) sums[k] += values[k];
      }
    }
#pragma unroll
    for (unsigned k = 0; k < n; ++k) sums[k] /= static_cast<float>(rows.count * columns.count);
    y.store(i, sums);
  }
  [[nodiscard]] PACELINE_HD std::int64_t elements() const {
    return y.elements();
  }
  [[nodiscard]] PACELINE_HD bool is_wide() const {
    return x.has_wide_pixels() && y.is_aligned();
  }
  [[nodiscard]] std::uint64_t count() const {
    return count_pieces(*this);
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, x);
    visitor.read(windows.rows, static_cast<std::size_t>(y.height));
    visitor.read(windows.columns, static_cast<std::size_t>(y.width));
    writes(visitor, y);
  }
};

struct AveragePoolDataGradient {
  MeanWindows windows;
  Tensor dy;
  Tensor dx;

  PACELINE_HD void operator()(std::uint64_t piece) const { take_piece(*this, piece); }
  template <unsigned n>
  PACELINE_HD void take(std::int64_t i) const {
    const Place to = place_of(dx, i);
    const CoveringWindows rows = windows.over_rows[to.y];
    const CoveringWindows columns = windows.over_columns[to.x];
    float sums[n] = {};
    for (std::int64_t y = rows.first; y < rows.end; ++y) {
      for (std::int64_t x = columns.first; x < columns.end; ++x) {
        const auto of_window = static_cast<float>(windows.rows[y].count * windows.columns[x].count);
        float values[n];
        dy.load(dy.index(to.image, y, x, to.channel), values);
#pragma unroll
        for (unsigned k = 0; k < n; ++k) sums[k] += values[k] / of_window;
      }
    }
    dx.store(i, sums);
  }
  [[nodiscard]] PACELINE_HD std::int64_t elements() const {
    return dx.elements();
  }
  [[nodiscard]] PACELINE_HD bool is_wide() const {
    return dx.has_wide_pixels() && dy.is_aligned();
  }
  [[nodiscard]] std::uint64_t count() const {
    return count_pieces(*this);
  }
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

// Convolutions and fully connected layers, which are convolutions whose kernel covers the input.
//
// These are direct: each element of a result is computed by itself, with the sum of its products in
// double. They are the reference of the operation interface, which runs anywhere and is slow. Work:
// 2 multiply-adds for each FLOP pair of models/network/work.h, without reuse of what was read.
#pragma once

#include "runtime/network/cuda/bodies/tensor.h"

namespace paceline::runtime::cuda {

// How windows lie on the input.
struct Windows {
  std::int64_t kernel_height = 1;
  std::int64_t kernel_width = 1;
  std::int64_t stride_height = 1;
  std::int64_t stride_width = 1;
  std::int64_t padding_height = 0;
  std::int64_t padding_width = 0;
  std::int64_t dilation_height = 1;
  std::int64_t dilation_width = 1;
  std::int64_t groups = 1;

  // The row of the input under row r of the kernel for row y of the output; it may lie outside.
  [[nodiscard]] PACELINE_HD std::int64_t row(std::int64_t y, std::int64_t r) const {
    return y * stride_height - padding_height + r * dilation_height;
  }
  [[nodiscard]] PACELINE_HD std::int64_t column(std::int64_t x, std::int64_t s) const {
    return x * stride_width - padding_width + s * dilation_width;
  }
  // The row of the output that reads row h of the input by row r of the kernel, or -1.
  [[nodiscard]] PACELINE_HD std::int64_t output_row(std::int64_t h, std::int64_t r,
                                                    std::int64_t rows) const {
    const std::int64_t offset = h + padding_height - r * dilation_height;
    if (offset < 0 || offset % stride_height != 0) return -1;
    return offset / stride_height < rows ? offset / stride_height : -1;
  }
  [[nodiscard]] PACELINE_HD std::int64_t output_column(std::int64_t w, std::int64_t s,
                                                       std::int64_t columns) const {
    const std::int64_t offset = w + padding_width - s * dilation_width;
    if (offset < 0 || offset % stride_width != 0) return -1;
    return offset / stride_width < columns ? offset / stride_width : -1;
  }
};

PACELINE_HD inline bool is_inside(std::int64_t i, std::int64_t size) {
  return i >= 0 && i < size;
}

// Weights in the storage type: (output channel, kernel row, kernel column, channel of the group).
struct Filters {
  void* data = nullptr;
  NumberType type = NumberType::fp32;
  std::int64_t outputs = 0;
  std::int64_t kernel_height = 1;
  std::int64_t kernel_width = 1;
  std::int64_t channels = 1;         // of a group
  std::int64_t stored_channels = 1;  // the same, and behind them zeros

  // The number of elements in the caller's array.
  [[nodiscard]] PACELINE_HD std::int64_t elements() const {
    return outputs * kernel_height * kernel_width * channels;
  }
  [[nodiscard]] PACELINE_HD std::int64_t stored_elements() const {
    return outputs * kernel_height * kernel_width * stored_channels;
  }
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(stored_elements()) * bytes_of_number(type);
  }
  [[nodiscard]] PACELINE_HD std::int64_t index(std::int64_t k, std::int64_t r, std::int64_t s,
                                               std::int64_t c) const {
    return ((k * kernel_height + r) * kernel_width + s) * stored_channels + c;
  }
  [[nodiscard]] PACELINE_HD float at(std::int64_t k, std::int64_t r, std::int64_t s,
                                     std::int64_t c) const {
    return number_at(data, type, index(k, r, s, c));
  }
};

// A weight by its place.
struct FilterPlace {
  std::int64_t output = 0;
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::int64_t channel = 0;
};
// Of element i of the caller's array: (output channel, channel of the group, row, column).
PACELINE_HD inline FilterPlace plain_place_of(const Filters& filters, std::int64_t i) {
  FilterPlace place;
  place.column = i % filters.kernel_width;
  i /= filters.kernel_width;
  place.row = i % filters.kernel_height;
  i /= filters.kernel_height;
  place.channel = i % filters.channels;
  place.output = i / filters.channels;
  return place;
}

// Fills filters from the caller's FP32 array. One stored element each.
struct LoadFilters {
  const float* source = nullptr;
  Filters target;

  PACELINE_HD void operator()(std::uint64_t index) const {
    auto i = static_cast<std::int64_t>(index);
    const std::int64_t c = i % target.stored_channels;
    i /= target.stored_channels;
    const std::int64_t s = i % target.kernel_width;
    i /= target.kernel_width;
    const std::int64_t r = i % target.kernel_height;
    const std::int64_t k = i / target.kernel_height;
    float value = 0;
    if (c < target.channels)
      value =
          source[((k * target.channels + c) * target.kernel_height + r) * target.kernel_width + s];
    set_number(target.data, target.type, static_cast<std::int64_t>(index), value);
  }
  [[nodiscard]] std::uint64_t count() const {
    return static_cast<std::uint64_t>(target.stored_elements());
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.read(source, static_cast<std::size_t>(target.elements()));
    visitor.write(static_cast<std::byte*>(target.data), target.bytes());
  }
};

// Gives the caller the gradient of filters that a library has made in their layout. One element of
// the caller's array each.
struct StoreFilterGradient {
  Filters source;
  ParameterGradient gradient;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    const FilterPlace from = plain_place_of(source, i);
    gradient.set(i, source.at(from.output, from.row, from.column, from.channel));
  }
  [[nodiscard]] std::uint64_t count() const {
    return static_cast<std::uint64_t>(source.elements());
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.read(static_cast<const std::byte*>(source.data), source.bytes());
    gradient.access(visitor, count());
  }
};

// The same for gamma and beta of a batch norm, whose gradients are vectors in FP32.
struct StoreNormGradients {
  const float* of_gamma = nullptr;
  const float* of_beta = nullptr;
  std::int64_t channels = 0;
  ParameterGradient gamma;
  ParameterGradient beta;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    gamma.set(i, of_gamma[i]);
    beta.set(i, of_beta[i]);
  }
  [[nodiscard]] std::uint64_t count() const { return static_cast<std::uint64_t>(channels); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.read(of_gamma, count());
    visitor.read(of_beta, count());
    gamma.access(visitor, count());
    beta.access(visitor, count());
  }
};

// Fills a vector of a layer (a bias, gamma, beta) from the caller's FP32 array.
struct LoadVector {
  const float* source = nullptr;
  void* target = nullptr;
  NumberType type = NumberType::fp32;
  std::int64_t elements = 0;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    set_number(target, type, i, source[i]);
  }
  [[nodiscard]] std::uint64_t count() const { return static_cast<std::uint64_t>(elements); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.read(source, count());
    visitor.write(static_cast<std::byte*>(target), count() * bytes_of_number(type));
  }
};

// y = convolution of x, plus the bias, which may be null; with `relu` what is not positive is 0. One
// element of y each.
struct ConvolutionForward {
  Windows windows;
  Tensor x;
  Filters filters;
  const void* bias = nullptr;  // of the filters' type
  bool relu = false;
  Tensor y;

  PACELINE_HD void operator()(std::uint64_t i) const {
    const Place to = place_of(y, static_cast<std::int64_t>(i));
    const std::int64_t first = to.channel / (filters.outputs / windows.groups) * filters.channels;
    double sum = 0;
    for (std::int64_t r = 0; r < filters.kernel_height; ++r) {
      const std::int64_t row = windows.row(to.y, r);
      if (!is_inside(row, x.height)) continue;
      for (std::int64_t s = 0; s < filters.kernel_width; ++s) {
        const std::int64_t column = windows.column(to.x, s);
        if (!is_inside(column, x.width)) continue;
        for (std::int64_t c = 0; c < filters.channels; ++c)
          sum += static_cast<double>(x.at(to.image, row, column, first + c)) *
                 static_cast<double>(filters.at(to.channel, r, s, c));
      }
    }
    if (bias != nullptr) sum += static_cast<double>(number_at(bias, filters.type, to.channel));
    y.set(static_cast<std::int64_t>(i),
          relu ? positive(static_cast<float>(sum)) : static_cast<float>(sum));
  }
  [[nodiscard]] std::uint64_t count() const { return static_cast<std::uint64_t>(y.elements()); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, x);
    visitor.read(static_cast<const std::byte*>(filters.data), filters.bytes());
    if (bias != nullptr)
      visitor.read(static_cast<const std::byte*>(bias),
                   static_cast<std::size_t>(filters.outputs) * bytes_of_number(filters.type));
    writes(visitor, y);
  }
};

// The gradient of x from that of y. One element of x each.
struct ConvolutionDataGradient {
  Windows windows;
  Tensor dy;
  Filters filters;
  Tensor dx;

  PACELINE_HD void operator()(std::uint64_t i) const {
    const Place to = place_of(dx, static_cast<std::int64_t>(i));
    const std::int64_t outputs = filters.outputs / windows.groups;  // of a group
    const std::int64_t group = to.channel / filters.channels;
    double sum = 0;
    for (std::int64_t r = 0; r < filters.kernel_height; ++r) {
      const std::int64_t y = windows.output_row(to.y, r, dy.height);
      if (y < 0) continue;
      for (std::int64_t s = 0; s < filters.kernel_width; ++s) {
        const std::int64_t x = windows.output_column(to.x, s, dy.width);
        if (x < 0) continue;
        for (std::int64_t k = group * outputs; k < (group + 1) * outputs; ++k)
          sum += static_cast<double>(dy.at(to.image, y, x, k)) *
                 static_cast<double>(filters.at(k, r, s, to.channel % filters.channels));
      }
    }
    dx.set(static_cast<std::int64_t>(i), static_cast<float>(sum));
  }
  [[nodiscard]] std::uint64_t count() const { return static_cast<std::uint64_t>(dx.elements()); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, dy);
    visitor.read(static_cast<const std::byte*>(filters.data), filters.bytes());
    writes(visitor, dx);
  }
};

// The gradient of the filters, in the caller's layout. `filters` has their sizes; its data is not
// read. One element of the filters each.
struct ConvolutionFilterGradient {
  Windows windows;
  Tensor x;
  Tensor dy;
  Filters filters;
  ParameterGradient gradient;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const FilterPlace to = plain_place_of(filters, static_cast<std::int64_t>(index));
    const std::int64_t channel =
        to.output / (filters.outputs / windows.groups) * filters.channels + to.channel;
    double sum = 0;
    for (std::int64_t n = 0; n < dy.images; ++n) {
      for (std::int64_t y = 0; y < dy.height; ++y) {
        const std::int64_t row = windows.row(y, to.row);
        if (!is_inside(row, x.height)) continue;
        for (std::int64_t out = 0; out < dy.width; ++out) {
          const std::int64_t column = windows.column(out, to.column);
          if (!is_inside(column, x.width)) continue;
          sum += static_cast<double>(x.at(n, row, column, channel)) *
                 static_cast<double>(dy.at(n, y, out, to.output));
        }
      }
    }
    gradient.set(static_cast<std::int64_t>(index), static_cast<float>(sum));
  }
  [[nodiscard]] std::uint64_t count() const {
    return static_cast<std::uint64_t>(filters.elements());
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, x);
    reads(visitor, dy);
    gradient.access(visitor, count());
  }
};

// The gradient of a bias: sums of dy over all pixels. One block for each channel.
struct BiasGradient {
  static constexpr int phases = 2;
  static constexpr unsigned threads = 256;
  Tensor dy;
  ParameterGradient gradient;

  PACELINE_HD void phase(int p, const Block& block) const {
    auto* sums = block.shared<double>();
    if (p == 0) {
      double sum = 0;
      for (std::int64_t i = block.thread; i < dy.pixels(); i += block.threads)
        sum += static_cast<double>(dy.at(i * dy.channels + block.block));
      sums[block.thread] = sum;
    } else if (block.thread == 0) {
      double sum = 0;
      for (unsigned t = 0; t < block.threads; ++t) sum += sums[t];
      gradient.set(block.block, static_cast<float>(sum));
    }
  }
  [[nodiscard]] unsigned blocks() const { return static_cast<unsigned>(dy.channels); }
  [[nodiscard]] std::size_t shared_bytes() const { return threads * sizeof(double); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, dy);
    gradient.access(visitor, static_cast<std::size_t>(dy.channels));
  }
};

}  // namespace paceline::runtime::cuda

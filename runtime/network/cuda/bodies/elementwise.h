// Layers that touch each element once: images, sums, ReLU, dropout, concat and flatten.
// Those that keep the order of elements take 16 bytes at a time where tensors are aligned (take_piece).
// All are bound by memory: bytes moved are those of the tensors that access() names.
#pragma once

#include "models/base/seeds.h"
#include "runtime/network/cuda/bodies/tensor.h"

namespace paceline::runtime::cuda {

// Images from FP32 NCHW to the storage type and NHWC. Images beyond the samples that count are 0, and
// so are channels of x beyond those of the images. One pixel each, because neighbours read neighbours.
// A vector has one pixel, and its numbers stand in the same order on both sides.
struct LoadImages {
  const float* images = nullptr;
  std::int64_t channels = 0;
  const PassParameters* pass = nullptr;
  Tensor x;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    const std::int64_t area = x.height * x.width;
    if (area == 1) {
      const std::int64_t image = i / x.channels;
      const std::int64_t channel = i % x.channels;
      x.set(i, number(image, channel, 0, area));
      return;
    }
    const std::int64_t image = i / area;
    for (std::int64_t channel = 0; channel < x.channels; ++channel)
      x.set(i * x.channels + channel, number(image, channel, i - image * area, area));
  }
  [[nodiscard]] PACELINE_HD float number(std::int64_t image, std::int64_t channel,
                                         std::int64_t pixel, std::int64_t area) const {
    const bool is_there = image < pass->samples && channel < channels;
    return is_there ? images[(image * channels + channel) * area + pixel] : 0.0F;
  }
  [[nodiscard]] std::uint64_t count() const {
    return static_cast<std::uint64_t>(x.height * x.width == 1 ? x.elements() : x.pixels());
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.read(images, static_cast<std::size_t>(x.pixels() * channels));
    visitor.read(pass, 1);
    writes(visitor, x);
  }
};

// y = the sum of terms; with `relu` what is not positive is 0.
struct Sum {
  Terms terms;
  bool relu = false;
  Tensor y;

  PACELINE_HD void operator()(std::uint64_t piece) const { take_piece(*this, piece); }
  template <unsigned n>
  PACELINE_HD void take(std::int64_t i) const {
    float sums[n];
    terms.sum(i, sums);
    if (relu) {
#pragma unroll
      for (unsigned k = 0; k < n; ++k) sums[k] = positive(sums[k]);
    }
    y.store(i, sums);
  }
  [[nodiscard]] PACELINE_HD std::int64_t elements() const {
    return y.elements();
  }
  [[nodiscard]] PACELINE_HD bool is_wide() const {
    return terms.are_aligned() && y.is_aligned();
  }
  [[nodiscard]] std::uint64_t count() const {
    return count_pieces(*this);
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    terms.access(visitor, y.bytes());
    writes(visitor, y);
  }
};

// The gradient of a ReLU's input: that of its output, which is a sum of terms, where y is positive.
struct ReluDataGradient {
  Tensor y;
  Terms terms;
  Tensor dx;

  PACELINE_HD void operator()(std::uint64_t piece) const { take_piece(*this, piece); }
  template <unsigned n>
  PACELINE_HD void take(std::int64_t i) const {
    float signs[n];
    float sums[n];
    y.load(i, signs);
    terms.sum(i, sums);
#pragma unroll
    for (unsigned k = 0; k < n; ++k)
      if (!(signs[k] > 0)) sums[k] = 0;
    dx.store(i, sums);
  }
  [[nodiscard]] PACELINE_HD std::int64_t elements() const {
    return y.elements();
  }
  [[nodiscard]] PACELINE_HD bool is_wide() const {
    return terms.are_aligned() && y.is_aligned() && dx.is_aligned();
  }
  [[nodiscard]] std::uint64_t count() const {
    return count_pieces(*this);
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, y);
    terms.access(visitor, y.bytes());
    writes(visitor, dx);
  }
};

// target = source times the mask of (seed, layer), as drop_out() of runtime/network/dropout.h draws
// it for NCHW; in an evaluation, which has no mask, target = source.
struct Dropout {
  Tensor source;
  const PassParameters* pass = nullptr;
  int layer = 0;
  double probability = 0.5;
  bool has_mask = true;
  Tensor target;

  PACELINE_HD void operator()(std::uint64_t piece) const { take_piece(*this, piece); }
  template <unsigned n>
  PACELINE_HD void take(std::int64_t i) const {
    float values[n];
    source.load(i, values);
    if (has_mask) {
      const std::uint64_t start =
          mixed_seed(mixed_seed(pass->dropout_seed, 0), static_cast<std::uint64_t>(layer));
      const double kept = 1 - probability;
#pragma unroll
      for (unsigned k = 0; k < n; ++k) {
        const std::int64_t plain = plain_index(source, place_of(source, i + k));
        const std::uint64_t draw = mixed_seed(start, static_cast<std::uint64_t>(plain)) >> 11;
        values[k] = draw < static_cast<std::uint64_t>(probability * 9007199254740992.0) || kept <= 0
                        ? 0.0F
                        : static_cast<float>(1 / kept) * values[k];
      }
    }
    target.store(i, values);
  }
  [[nodiscard]] PACELINE_HD std::int64_t elements() const {
    return source.elements();
  }
  [[nodiscard]] PACELINE_HD bool is_wide() const {
    return source.is_aligned() && target.is_aligned();
  }
  [[nodiscard]] std::uint64_t count() const {
    return count_pieces(*this);
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, source);
    visitor.read(pass, 1);
    writes(visitor, target);
  }
};

// Copies `channels` channels of each pixel, from channel `from` of the source to channel `to` of
// the target: one input of a concat, or its gradient.
struct CopyChannels {
  Tensor source;
  std::int64_t from = 0;
  Tensor target;
  std::int64_t to = 0;
  std::int64_t channels = 0;

  PACELINE_HD void operator()(std::uint64_t piece) const { take_piece(*this, piece); }
  template <unsigned n>
  PACELINE_HD void take(std::int64_t i) const {
    const std::int64_t pixel = i / channels;
    const std::int64_t c = i % channels;
    float values[n];
    source.load(pixel * source.channels + from + c, values);
    target.store(pixel * target.channels + to + c, values);
  }
  [[nodiscard]] PACELINE_HD std::int64_t elements() const { return source.pixels() * channels; }
  [[nodiscard]] PACELINE_HD bool is_wide() const {
    return source.has_wide_pixels() && target.has_wide_pixels() && channels % wide == 0 &&
           from % wide == 0 && to % wide == 0;
  }
  [[nodiscard]] std::uint64_t count() const { return count_pieces(*this); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, source);
    writes(visitor, target);
  }
};

// An image as a vector, in the order of NCHW, which is that of a fully connected layer's weights.
// With `back` the gradient of the vector becomes that of the image.
struct Flatten {
  Tensor source;
  bool back = false;
  Tensor target;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    const Tensor& image = back ? target : source;
    const std::int64_t plain = plain_index(image, place_of(image, i));
    target.set(back ? i : plain, source.at(back ? plain : i));
  }
  [[nodiscard]] std::uint64_t count() const {
    return static_cast<std::uint64_t>(source.elements());
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, source);
    writes(visitor, target);
  }
};

}  // namespace paceline::runtime::cuda

// Layers that touch each element once: images, ReLU, dropout, add, concat and flatten.
// All are bound by memory: bytes moved are those of the tensors that access() names.
#pragma once

#include "models/base/seeds.h"
#include "runtime/network/cuda/bodies/tensor.h"

namespace paceline::runtime::cuda {

// Images from FP32 NCHW to the storage type and NHWC. Images beyond the samples that count are 0.
struct LoadImages {
  const float* images = nullptr;
  const PassParameters* pass = nullptr;
  Tensor x;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    const Place place = place_of(x, i);
    x.set(i, place.image < pass->samples ? images[plain_index(x, place)] : 0.0F);
  }
  [[nodiscard]] std::uint64_t count() const { return static_cast<std::uint64_t>(x.elements()); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.read(images, count());
    visitor.read(pass, 1);
    writes(visitor, x);
  }
};

// A NaN stays one.
struct ReluForward {
  Tensor x;
  Tensor y;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    const float value = x.at(i);
    y.set(i, value <= 0 ? 0.0F : value);
  }
  [[nodiscard]] std::uint64_t count() const { return static_cast<std::uint64_t>(x.elements()); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, x);
    writes(visitor, y);
  }
};

struct ReluDataGradient {
  Tensor y;
  Tensor dy;
  Contribution dx;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    dx.set(i, y.at(i) > 0 ? dy.at(i) : 0.0F);
  }
  [[nodiscard]] std::uint64_t count() const { return static_cast<std::uint64_t>(y.elements()); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, y);
    reads(visitor, dy);
    dx.access(visitor);
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
  Contribution target;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    float value = source.at(i);
    if (has_mask) {
      const std::uint64_t start =
          mixed_seed(mixed_seed(pass->dropout_seed, 0), static_cast<std::uint64_t>(layer));
      const std::uint64_t draw =
          mixed_seed(start, static_cast<std::uint64_t>(plain_index(source, place_of(source, i)))) >>
          11;
      const double kept = 1 - probability;
      value = draw < static_cast<std::uint64_t>(probability * 9007199254740992.0) || kept <= 0
                  ? 0.0F
                  : static_cast<float>(1 / kept) * value;
    }
    target.set(i, value);
  }
  [[nodiscard]] std::uint64_t count() const {
    return static_cast<std::uint64_t>(source.elements());
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, source);
    visitor.read(pass, 1);
    target.access(visitor);
  }
};

// y = a + b.
struct Sum {
  Tensor a;
  Tensor b;
  Tensor y;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    y.set(i, a.at(i) + b.at(i));
  }
  [[nodiscard]] std::uint64_t count() const { return static_cast<std::uint64_t>(y.elements()); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, a);
    reads(visitor, b);
    writes(visitor, y);
  }
};

// Copies `channels` channels of each pixel, from channel `from` of the source to channel `to` of
// the target: one input of a concat, its gradient, or any gradient that is passed on as it is.
struct CopyChannels {
  Tensor source;
  std::int64_t from = 0;
  Contribution target;
  std::int64_t to = 0;
  std::int64_t channels = 0;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    const std::int64_t pixel = i / channels;
    const std::int64_t c = i % channels;
    target.set(pixel * target.target.channels + to + c,
               source.at(pixel * source.channels + from + c));
  }
  [[nodiscard]] std::uint64_t count() const {
    return static_cast<std::uint64_t>(source.pixels() * channels);
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, source);
    target.access(visitor);
  }
};

// An image as a vector, in the order of NCHW, which is that of a fully connected layer's weights.
// With `back` the gradient of the vector becomes that of the image.
struct Flatten {
  Tensor source;
  bool back = false;
  Contribution target;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    const Tensor& image = back ? target.target : source;
    const std::int64_t plain = plain_index(image, place_of(image, i));
    target.set(back ? i : plain, source.at(back ? plain : i));
  }
  [[nodiscard]] std::uint64_t count() const {
    return static_cast<std::uint64_t>(source.elements());
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, source);
    target.access(visitor);
  }
};

}  // namespace paceline::runtime::cuda

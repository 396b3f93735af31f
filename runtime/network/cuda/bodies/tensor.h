// Numbers of activations and weights, in FP32, FP16 or BF16, as bodies of kernels read and write them.
//
// Arithmetic is in FP32 (sums of many numbers in double), and what is stored is rounded to the
// storage type, to nearest and ties to even: the same places at which CpuNetwork rounds where its
// arithmetic is FP32 (runtime/network/cpu_network.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/base/precision.h"
#include "runtime/device/cuda/bodies/numbers.h"

namespace paceline::runtime::cuda {

using models::NumberType;

PACELINE_HD inline float number_at(const void* data, NumberType type, std::int64_t i) {
  switch (type) {
    case NumberType::fp16:
      return value_of(static_cast<const Fp16*>(data)[i]);
    case NumberType::bf16:
      return value_of(static_cast<const Bf16*>(data)[i]);
    case NumberType::fp32:
      break;
  }
  return static_cast<const float*>(data)[i];
}

PACELINE_HD inline std::size_t bytes_of_number(NumberType type) {
  return type == NumberType::fp32 ? 4 : 2;
}

// Stores `value`, rounded.
PACELINE_HD inline void set_number(void* data, NumberType type, std::int64_t i, float value) {
  switch (type) {
    case NumberType::fp16:
      return store(static_cast<Fp16*>(data) + i, value);
    case NumberType::bf16:
      return store(static_cast<Bf16*>(data) + i, value);
    case NumberType::fp32:
      break;
  }
  store(static_cast<float*>(data) + i, value);
}

// Loads and stores n numbers from i on: 1 of them, or 8 by accesses of 16 bytes at an address that is a
// multiple of 16.
template <unsigned n>
PACELINE_HD void load_numbers(const void* data, NumberType type, std::int64_t i,
                              float (&values)[n]) {
  if constexpr (n == 1) {
    values[0] = number_at(data, type, i);
  } else {
    switch (type) {
      case NumberType::fp16:
        return load(static_cast<const Fp16*>(data) + i, values);
      case NumberType::bf16:
        return load(static_cast<const Bf16*>(data) + i, values);
      case NumberType::fp32:
        return load(static_cast<const float*>(data) + i, values);
    }
  }
}
template <unsigned n>
PACELINE_HD void store_numbers(void* data, NumberType type, std::int64_t i,
                               const float (&values)[n]) {
  if constexpr (n == 1) {
    set_number(data, type, i, values[0]);
  } else {
    switch (type) {
      case NumberType::fp16:
        return store(static_cast<Fp16*>(data) + i, values);
      case NumberType::bf16:
        return store(static_cast<Bf16*>(data) + i, values);
      case NumberType::fp32:
        return store(static_cast<float*>(data) + i, values);
    }
  }
}

// Elements that one thread takes where is_wide() of a body holds.
inline constexpr unsigned wide = 8;
PACELINE_HD inline bool is_aligned(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
}

// The bodies that take elements one by one, or `wide` at once, have elements(), which counts them,
// is_wide(), and take<n>(i) for n elements from i on. Of the last piece those that are left are taken
// one by one. Both ways have the same bits.
template <class Body>
PACELINE_HD void take_piece(const Body& body, std::uint64_t piece) {
  if (!body.is_wide()) return body.template take<1>(static_cast<std::int64_t>(piece));
  const auto first = static_cast<std::int64_t>(piece * wide);
  if (first + wide <= body.elements()) return body.template take<wide>(first);
  for (std::int64_t i = first; i < body.elements(); ++i) body.template take<1>(i);
}
template <class Body>
[[nodiscard]] std::uint64_t count_pieces(const Body& body) {
  const auto elements = static_cast<std::uint64_t>(body.elements());
  return body.is_wide() ? (elements + wide - 1) / wide : elements;
}

PACELINE_HD inline float rounded(NumberType type, float value) {
  std::uint32_t word = 0;
  if (type == NumberType::fp32) return canonical(value);
  set_number(&word, type, 0, value);
  return number_at(&word, type, 0);
}

// A NaN stays one.
PACELINE_HD inline float positive(float value) {
  return value <= 0 ? 0.0F : value;
}

// Activations of a batch, or their gradient: NHWC. A vector has one pixel.
struct Tensor {
  void* data = nullptr;
  NumberType type = NumberType::fp32;
  std::int64_t images = 0;
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t channels = 1;

  [[nodiscard]] PACELINE_HD std::int64_t pixels() const { return images * height * width; }
  [[nodiscard]] PACELINE_HD std::int64_t elements() const { return pixels() * channels; }
  [[nodiscard]] PACELINE_HD std::size_t bytes() const {
    return static_cast<std::size_t>(elements()) * bytes_of_number(type);
  }
  [[nodiscard]] PACELINE_HD std::int64_t index(std::int64_t n, std::int64_t y, std::int64_t x,
                                               std::int64_t c) const {
    return ((n * height + y) * width + x) * channels + c;
  }
  [[nodiscard]] PACELINE_HD float at(std::int64_t i) const { return number_at(data, type, i); }
  [[nodiscard]] PACELINE_HD float at(std::int64_t n, std::int64_t y, std::int64_t x,
                                     std::int64_t c) const {
    return number_at(data, type, index(n, y, x, c));
  }
  PACELINE_HD void set(std::int64_t i, float value) const { set_number(data, type, i, value); }
  template <unsigned n>
  PACELINE_HD void load(std::int64_t i, float (&values)[n]) const {
    load_numbers(data, type, i, values);
  }
  template <unsigned n>
  PACELINE_HD void store(std::int64_t i, const float (&values)[n]) const {
    store_numbers(data, type, i, values);
  }
  [[nodiscard]] PACELINE_HD bool is_aligned() const { return cuda::is_aligned(data); }
  // Whether `wide` elements from a multiple of it are of one pixel, and aligned.
  [[nodiscard]] PACELINE_HD bool has_wide_pixels() const {
    return is_aligned() && channels % wide == 0;
  }
};

// An element of a tensor by its place.
struct Place {
  std::int64_t image = 0;
  std::int64_t y = 0;
  std::int64_t x = 0;
  std::int64_t channel = 0;
};
PACELINE_HD inline Place place_of(const Tensor& tensor, std::int64_t i) {
  Place place;
  place.channel = i % tensor.channels;
  i /= tensor.channels;
  place.x = i % tensor.width;
  i /= tensor.width;
  place.y = i % tensor.height;
  place.image = i / tensor.height;
  return place;
}
// Where the element stands in NCHW, the layout of images and of dropout's masks.
PACELINE_HD inline std::int64_t plain_index(const Tensor& tensor, const Place& place) {
  return ((place.image * tensor.channels + place.channel) * tensor.height + place.y) *
             tensor.width +
         place.x;
}

// Where the gradient of a parameter goes: in FP32 into the caller's flat array, rounded to `type`.
// The array is known when a backward pass begins.
struct ParameterGradient {
  float* array = nullptr;
  std::int64_t offset = 0;  // elements
  NumberType type = NumberType::fp32;

  PACELINE_HD void set(std::int64_t i, float value) const {
    array[offset + i] = rounded(type, value);
  }
  template <class Visitor>
  void access(const Visitor& visitor, std::size_t elements) const {
    visitor.write(array + offset, elements);
  }
};

// What the operations of one pass share, in memory of the device.
struct PassParameters {
  std::uint64_t dropout_seed = 0;
  float loss_scale = 1;
  std::int32_t samples = 0;  // that count: the batch, or fewer in an evaluation
};

// Values of the same shape that are added up, one after the other, each sum rounded to their type.
struct Terms {
  static constexpr int most = 16;
  const void* data[most] = {};
  int count = 0;
  NumberType type = NumberType::fp32;

  template <unsigned n>
  PACELINE_HD void sum(std::int64_t i, float (&sums)[n]) const {
    load_numbers(data[0], type, i, sums);
    for (int k = 1; k < count; ++k) {
      float values[n];
      load_numbers(data[k], type, i, values);
#pragma unroll
      for (unsigned e = 0; e < n; ++e) sums[e] = rounded(type, sums[e] + values[e]);
    }
  }
  [[nodiscard]] PACELINE_HD bool are_aligned() const {
    bool all = true;
    for (int k = 0; k < count; ++k) all = all && is_aligned(data[k]);
    return all;
  }
  template <class Visitor>
  void access(const Visitor& visitor, std::size_t bytes) const {
    for (int k = 0; k < count; ++k) visitor.read(static_cast<const std::byte*>(data[k]), bytes);
  }
};

template <class Visitor>
void reads(const Visitor& visitor, const Tensor& tensor) {
  visitor.read(static_cast<const std::byte*>(tensor.data), tensor.bytes());
}
template <class Visitor>
void writes(const Visitor& visitor, const Tensor& tensor) {
  visitor.write(static_cast<std::byte*>(tensor.data), tensor.bytes());
}

}  // namespace paceline::runtime::cuda

// Descriptors from which tests leave something out or put something wrong in. What is made of a
// description holds what it was made of, and the first status that was no success.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tests/cuda/cudnn/raw.h"

namespace cuda_contract {

using Sizes = std::vector<std::int64_t>;

// A finalised descriptor, or one whose making was refused.
struct Made {
  std::shared_ptr<Raw> raw;
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  operator cudnnBackendDescriptor_t() const { return *raw; }  // NOLINT: is used as the descriptor
};

// Sets attributes one after the other, and remembers the first refusal.
class Maker {
 public:
  explicit Maker(cudnnBackendDescriptorType_t type) : made_{std::make_shared<Raw>(type)} {}

  Maker& set(cudnnBackendAttributeName_t name, const Sizes& values) {
    return put(name, CUDNN_TYPE_INT64, values.size(), values.data());
  }
  Maker& set(cudnnBackendAttributeName_t name, std::int64_t value) {
    return put(name, CUDNN_TYPE_INT64, 1, &value);
  }
  Maker& set(cudnnBackendAttributeName_t name, bool value) {
    return put(name, CUDNN_TYPE_BOOLEAN, 1, &value);
  }
  Maker& set(cudnnBackendAttributeName_t name, float value) {
    return put(name, CUDNN_TYPE_FLOAT, 1, &value);
  }
  Maker& set(cudnnBackendAttributeName_t name, const Made& value) {
    const cudnnBackendDescriptor_t raw = value;
    return put(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  }
  Maker& set(cudnnBackendAttributeName_t name, const std::vector<Made>& values) {
    const std::vector<cudnnBackendDescriptor_t> raw(values.begin(), values.end());
    return put(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.size(), raw.data());
  }
  Maker& set(cudnnBackendAttributeName_t name, const std::string& text) {
    return put(name, CUDNN_TYPE_CHAR, text.size(), text.data());
  }
  // An enumeration.
  template <class Enumeration>
  Maker& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
             Enumeration value) {
    return put(name, type, 1, &value);
  }
  Maker& put(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::size_t count,
             const void* values) {
    note(made_.raw->set(name, type, static_cast<std::int64_t>(count), values));
    return *this;
  }
  Made finalise() {
    note(made_.raw->finalise());
    return made_;
  }
  // Not finalised.
  [[nodiscard]] Made as_it_is() const { return made_; }

 private:
  void note(cudnnStatus_t status) {
    if (made_.status == CUDNN_STATUS_SUCCESS) made_.status = status;
  }
  Made made_;
};

struct TensorPart {
  std::int64_t uid = 1;
  std::optional<Sizes> dims = Sizes{4, 16, 8, 8};
  std::optional<Sizes> strides = std::nullopt;  // NHWC where there are four dims
  std::optional<cudnnDataType_t> type = CUDNN_DATA_HALF;
  std::optional<std::int64_t> alignment = 16;
  bool is_virtual = false;
  bool by_value = false;
  bool has_strides = true;
};

inline Made make(const TensorPart& t, bool finalises = true) {
  Maker maker(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  if (t.type) maker.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, *t.type);
  if (t.dims) maker.set(CUDNN_ATTR_TENSOR_DIMENSIONS, *t.dims);
  const Sizes d = t.dims.value_or(Sizes{4, 16, 8, 8});
  if (t.strides)
    maker.set(CUDNN_ATTR_TENSOR_STRIDES, *t.strides);
  else if (t.has_strides && d.size() == 4)
    maker.set(CUDNN_ATTR_TENSOR_STRIDES, Sizes{d[1] * d[2] * d[3], 1, d[1] * d[3], d[1]});
  maker.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, t.uid);
  if (t.alignment) maker.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, *t.alignment);
  if (t.is_virtual) maker.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  if (t.by_value) maker.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  return finalises ? maker.finalise() : maker.as_it_is();
}

inline Made image(std::int64_t uid, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w,
                  cudnnDataType_t type = CUDNN_DATA_HALF, bool is_virtual = false) {
  return make({.uid = uid, .dims = Sizes{n, c, h, w}, .type = type, .is_virtual = is_virtual});
}

struct WindowPart {
  std::optional<std::int64_t> dims = 2;
  std::optional<Sizes> pre = Sizes{1, 1};
  std::optional<Sizes> post = Sizes{1, 1};
  std::optional<Sizes> stride = Sizes{1, 1};
  std::optional<Sizes> dilation = Sizes{1, 1};
  std::optional<cudnnConvolutionMode_t> mode = CUDNN_CROSS_CORRELATION;
  std::optional<cudnnDataType_t> arithmetic = CUDNN_DATA_FLOAT;
};

inline Made make(const WindowPart& w, bool finalises = true) {
  Maker maker(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  if (w.arithmetic)
    maker.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, *w.arithmetic);
  if (w.mode) maker.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, *w.mode);
  if (w.dims) maker.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, *w.dims);
  if (w.pre) maker.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, *w.pre);
  if (w.post) maker.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, *w.post);
  if (w.stride) maker.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, *w.stride);
  if (w.dilation) maker.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, *w.dilation);
  return finalises ? maker.finalise() : maker.as_it_is();
}

// The attributes of one of the three products of a convolution.
struct ConvolutionNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, w, y, window, alpha, beta;
};
inline constexpr ConvolutionNames forward_names = {
    CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
inline constexpr ConvolutionNames data_names = {
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
inline constexpr ConvolutionNames filter_names = {
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};

// Operations are descriptors by attribute; a part that is null is left out.
using Parts = std::map<cudnnBackendAttributeName_t, Made>;

inline Made convolution(const ConvolutionNames& names, const Parts& parts,
                        bool has_factors = true) {
  Maker maker(names.type);
  for (const auto& [name, part] : parts)
    if (part.raw != nullptr) maker.set(name, part);
  if (has_factors) maker.set(names.alpha, 1.0F).set(names.beta, 0.0F);
  return maker.finalise();
}

inline Made pointwise_mode(std::optional<cudnnPointwiseMode_t> mode, bool finalises = true) {
  Maker maker(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  if (mode) maker.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, *mode);
  maker.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  return finalises ? maker.finalise() : maker.as_it_is();
}

inline Made operation(cudnnBackendDescriptorType_t type, const Parts& parts) {
  Maker maker(type);
  for (const auto& [name, part] : parts)
    if (part.raw != nullptr) maker.set(name, part);
  return maker.finalise();
}

inline Made pointwise(cudnnPointwiseMode_t mode, Parts parts) {
  parts.emplace(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise_mode(mode));
  return operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, parts);
}

inline Made graph(const std::vector<Made>& operations) {
  return Maker(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
      .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations)
      .finalise();
}

}  // namespace cuda_contract

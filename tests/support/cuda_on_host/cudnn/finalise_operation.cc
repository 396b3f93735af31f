// Tensors, windows and operations: what cuDNN requires of each when it is finalised.
#include <algorithm>
#include <utility>

#include "tests/support/cuda_on_host/cudnn/finalise.h"
#include "tests/support/cuda_on_host/world.h"

namespace cuda_on_host::cudnn {
namespace {

constexpr std::size_t most_dims = CUDNN_DIM_MAX;

bool all_at_least(const List& list, std::int64_t least) {
  return std::all_of(list.begin(), list.end(), [&](std::int64_t n) { return n >= least; });
}

bool is_tensor(const Content& operation, int name) {
  return operation.value(name).type == CUDNN_TYPE_BACKEND_DESCRIPTOR &&
         operation.held(name)->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR;
}

// The window of a convolution, as the attributes of its three operations name it.
struct ConvolutionNames {
  int x, w, y, window, alpha, beta;
};

ConvolutionNames convolution_names(cudnnBackendDescriptorType_t type) {
  if (type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
    return {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  if (type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
    return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
            CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

// Whether the elements lie beside one another, in whatever order of dimensions.
bool is_packed(const Tensor& tensor) {
  std::vector<std::pair<std::int64_t, std::int64_t>> by_stride;
  for (std::size_t i = 0; i < tensor.dims.size(); ++i)
    if (tensor.dims[i] > 1) by_stride.emplace_back(tensor.strides[i], tensor.dims[i]);
  std::sort(by_stride.begin(), by_stride.end());
  std::int64_t next = 1;
  for (const auto& [stride, size] : by_stride) {
    if (stride != next) return false;
    next *= size;
  }
  return true;
}

void finalise_convolution(Content& content) {
  const ConvolutionNames names = convolution_names(content.type);
  const Tensor x = tensor_of(content, names.x, CUDNN_STATUS_BAD_PARAM);
  const Tensor w = tensor_of(content, names.w, CUDNN_STATUS_BAD_PARAM);
  const Tensor y = tensor_of(content, names.y, CUDNN_STATUS_BAD_PARAM);
  require(content.has(names.window), "a convolution without its window");
  const Content& window = *content.held(names.window);
  if (window.type != CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
    die("the window of a cuDNN convolution is none");
  require(window.finalised, "the window of a convolution is not finalised");
  require(!x.by_value && !w.by_value && !y.by_value, "a convolution of numbers");
  const auto spatial = static_cast<std::size_t>(window.number(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
  require(
      x.dims.size() == spatial + 2 && w.dims.size() == spatial + 2 && y.dims.size() == spatial + 2,
      "the tensors of a convolution have not two dimensions more than its window");
  require(all_at_least(x.dims, 1) && all_at_least(w.dims, 1) && all_at_least(y.dims, 1),
          "a convolution of nothing");
  require(x.dims[0] == y.dims[0], "the batches of a convolution's input and output differ");
  require(y.dims[1] == w.dims[0], "the channels of a convolution's output and filter differ");
  require(x.dims[1] % w.dims[1] == 0 && w.dims[0] % (x.dims[1] / w.dims[1]) == 0,
          "the channels of a convolution's input and filter do not fit");
  require(is_packed(w), "the filter of a convolution has gaps");
  const List none(spatial, 0);
  const List& pre = list_of(window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, none);
  const List& post = list_of(window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, none);
  const List& stride = window.value(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES).numbers;
  const List& dilation = window.value(CUDNN_ATTR_CONVOLUTION_DILATIONS).numbers;
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::int64_t reach = (w.dims[i + 2] - 1) * dilation[i] + 1;
    const std::int64_t room = x.dims[i + 2] + pre[i] + post[i] - reach;
    require(room >= 0 && room / stride[i] + 1 == y.dims[i + 2],
            "the sizes of a convolution's input, window and output do not fit");
  }
  put_real(content, names.alpha, 1);
  put_real(content, names.beta, 0);
}

}  // namespace

void put_real(Content& content, int name, double otherwise) {
  if (content.has(name)) return;
  Value value;
  value.type = CUDNN_TYPE_FLOAT;
  value.reals = {otherwise};
  content.values[name] = value;
}

const List& list_of(const Content& content, int name, const List& otherwise) {
  return content.has(name) ? content.value(name).numbers : otherwise;
}

Tensor tensor_of(const Content& operation, int name, cudnnStatus_t status) {
  const std::string what = "attribute " + std::to_string(name);
  require(operation.has(name), status, what + " is missing");
  const Content& held = *operation.held(name);
  if (held.type != CUDNN_BACKEND_TENSOR_DESCRIPTOR)
    die(what + " of a cuDNN operation is no tensor");
  require(held.finalised, status, what + " is not finalised");
  Tensor t;
  t.uid = held.number(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  t.type = static_cast<cudnnDataType_t>(held.number(CUDNN_ATTR_TENSOR_DATA_TYPE));
  t.dims = held.value(CUDNN_ATTR_TENSOR_DIMENSIONS).numbers;
  t.strides = held.value(CUDNN_ATTR_TENSOR_STRIDES).numbers;
  t.alignment = held.number(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  t.is_virtual = held.number(CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0;
  t.by_value = held.number(CUDNN_ATTR_TENSOR_IS_BY_VALUE) != 0;
  return t;
}

void finalise_tensor(Content& content) {
  for (const int name :
       {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT})
    require(content.has(name), "a tensor without attribute " + std::to_string(name));
  const auto put = [&](int name, cudnnBackendAttributeType_t type, std::int64_t otherwise) {
    if (!content.has(name)) content.put(name, type, {otherwise});
  };
  put(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  put(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 0);
  put(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 0);
  put(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 0);
  const List& dims = content.value(CUDNN_ATTR_TENSOR_DIMENSIONS).numbers;
  const List& strides = content.value(CUDNN_ATTR_TENSOR_STRIDES).numbers;
  require(dims.size() <= most_dims, "a tensor of more than 8 dimensions");
  require(dims.size() == strides.size(), "a tensor has not as many strides as dimensions");
  require(all_at_least(dims, 0), "a tensor has a negative size");
  require(all_at_least(strides, 0), "a tensor has a negative stride");
  const auto type = static_cast<cudnnDataType_t>(content.number(CUDNN_ATTR_TENSOR_DATA_TYPE));
  const std::int64_t alignment = content.number(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  require(alignment > 0 && alignment % static_cast<std::int64_t>(bytes_of(type)) == 0,
          "the alignment of a tensor is no multiple of its elements");
  if (content.number(CUDNN_ATTR_TENSOR_IS_BY_VALUE) == 0) return;
  require(std::all_of(dims.begin(), dims.end(), [](std::int64_t n) { return n == 1; }),
          "a tensor by value of several numbers");
}

void finalise_convolution_window(Content& content) {
  for (const int name : {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
                         CUDNN_ATTR_CONVOLUTION_DILATIONS})
    require(content.has(name), "a window without attribute " + std::to_string(name));
  const auto spatial = static_cast<std::size_t>(
      std::max<std::int64_t>(0, content.number(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS)));
  const List none(spatial, 0);
  for (const auto& [name, least] : {std::pair{CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 0},
                                    std::pair{CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 0},
                                    std::pair{CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 1},
                                    std::pair{CUDNN_ATTR_CONVOLUTION_DILATIONS, 1}}) {
    const List list = list_of(content, name, none);
    require(list.size() == spatial && all_at_least(list, least),
            "attribute " + std::to_string(name) + " of a window is wrong");
    content.put(name, CUDNN_TYPE_INT64, list);
  }
  if (!content.has(CUDNN_ATTR_CONVOLUTION_CONV_MODE))
    content.put(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, {CUDNN_CONVOLUTION});
  if (!content.has(CUDNN_ATTR_CONVOLUTION_COMP_TYPE))
    content.put(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, {CUDNN_DATA_FLOAT});
}

void finalise_operation(Content& content) {
  switch (content.type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return finalise_convolution(content);
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return finalise_pointwise(content);
    case CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR:
      return finalise_pool(content);
    case CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR:
      return finalise_norm(content);
    case CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR:
      return finalise_norm_backward(content);
    default:
      die("the double of cuDNN has no " + name_of(content.type));
  }
}

Node node_of(const Content& operation) {
  Node node;
  node.type = operation.type;
  const auto take = [&](const Content& from) {
    for (const auto& [name, value] : from.values) {
      if (!value.numbers.empty()) node.numbers[name] = value.numbers;
      if (!value.reals.empty()) node.reals[name] = value.reals[0];
    }
  };
  take(operation);
  for (const auto& [name, value] : operation.values) {
    if (value.descriptors.empty()) continue;
    if (is_tensor(operation, name))
      node.tensors[name] = tensor_of(operation, name, CUDNN_STATUS_BAD_PARAM);
    else
      take(*value.descriptors[0]);
  }
  return node;
}

}  // namespace cuda_on_host::cudnn

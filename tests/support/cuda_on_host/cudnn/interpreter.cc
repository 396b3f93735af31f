#include "tests/support/cuda_on_host/cudnn/interpreter.h"

#include <algorithm>
#include <utility>

#include "tests/support/cuda_on_host/cudnn/engines.h"
#include "tests/support/cuda_on_host/world.h"

namespace cuda_on_host::cudnn {
namespace {

void compute(const Node& node, std::int64_t engine, const Memory& memory, AllValues& values) {
  switch (node.type) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return compute_pointwise(node, values);
    case CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR:
      return compute_norm(node, memory.numbers, values);
    case CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR:
      return compute_norm_backward(node, values);
    case CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR:
      return compute_pool(node, values);
    case CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR:
      return compute_pool_backward(node, values);
    default:
      return compute_convolution(node, engine, values);
  }
}

const Values& value_of(const Node& node, int attribute, const AllValues& values) {
  return values.at(node.tensor(attribute).uid);
}

// The numbers of a tensor in the shape of another to which they spread.
Values spread(const Values& from, const Tensor& to) {
  Values all = Values::of(to);
  if (all.data.size() == from.data.size()) return from;
  float* out = all.data.data();
  for (std::int64_t n = 0; n < all.n; ++n)
    for (std::int64_t h = 0; h < all.h; ++h)
      for (std::int64_t w = 0; w < all.w; ++w) {
        const float* const in =
            from.at(from.n == 1 ? 0 : n, from.h == 1 ? 0 : h, from.w == 1 ? 0 : w);
        for (std::int64_t c = 0; c < all.c; ++c) *out++ = in[from.c == 1 ? 0 : c];
      }
  return all;
}

}  // namespace

void compute_pointwise(const Node& node, AllValues& values) {
  const std::int64_t mode = node.number(CUDNN_ATTR_POINTWISE_MODE);
  const bool backward = mode == CUDNN_POINTWISE_RELU_BWD;
  const Tensor& out = node.tensor(backward ? CUDNN_ATTR_OPERATION_POINTWISE_DXDESC
                                           : CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  Values x = spread(value_of(node, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, values), out);
  const auto with = [&](int attribute, auto function) {
    const Values other = spread(value_of(node, attribute, values), out);
    std::transform(x.data.begin(), x.data.end(), other.data.begin(), x.data.begin(), function);
  };
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
      with(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, [](float a, float b) { return a + b; });
      break;
    case CUDNN_POINTWISE_SUB:
      with(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, [](float a, float b) { return a - b; });
      break;
    case CUDNN_POINTWISE_MUL:
      with(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, [](float a, float b) { return a * b; });
      break;
    case CUDNN_POINTWISE_RELU_FWD:  // NaN stays NaN
      for (float& value : x.data) value = value <= 0 ? 0 : value;
      break;
    case CUDNN_POINTWISE_RELU_BWD:
      with(CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, [](float a, float dy) { return a > 0 ? dy : 0; });
      break;
    default:
      break;
  }
  values[out.uid] = std::move(x);
}

void interpret(const Graph& graph, std::int64_t engine, const Memory& memory) {
  AllValues values;
  for (const auto& [uid, tensor] : graph.tensors)
    if (!tensor.is_virtual && !tensor.by_value && graph.reads(uid))
      values[uid] = load(tensor, memory.tensors.at(uid));
  for (const Node& node : graph.nodes) {
    compute(node, engine, memory, values);
    for (const auto& [attribute, tensor] : node.tensors)
      if (node.writes(attribute)) round_to(tensor.type, values.at(tensor.uid).data);
  }
  for (const auto& [uid, tensor] : graph.tensors)
    if (!tensor.is_virtual && graph.writes(uid))
      store(tensor, values.at(uid), memory.tensors.at(uid));
}

}  // namespace cuda_on_host::cudnn

#include "tests/support/cuda_on_host/cudnn/engines.h"

#include <algorithm>
#include <set>

namespace cuda_on_host::cudnn {
namespace {

bool is_pointwise(const Node& node) {
  return node.type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
}
bool is_norm(const Node& node) {
  return node.type == CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR;
}
bool is_one_of(std::int64_t value, std::initializer_list<int> list) {
  return std::find(list.begin(), list.end(), value) != list.end();
}
bool is_real(cudnnDataType_t type) {
  return is_one_of(type, {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT});
}

// Each size is that of the whole, or 1.
bool spreads_to(const Tensor& tensor, const Tensor& whole) {
  for (std::size_t i = 0; i < whole.dims.size(); ++i)
    if (tensor.dims[i] != whole.dims[i] && tensor.dims[i] != 1) return false;
  return true;
}

std::string objection_to_pointwise(const Node& node) {
  if (!node.numbers.contains(CUDNN_ATTR_POINTWISE_MODE)) return "a pointwise operation of no mode";
  const std::int64_t mode = node.number(CUDNN_ATTR_POINTWISE_MODE);
  if (!is_one_of(mode,
                 {CUDNN_POINTWISE_ADD, CUDNN_POINTWISE_MUL, CUDNN_POINTWISE_SUB,
                  CUDNN_POINTWISE_RELU_FWD, CUDNN_POINTWISE_RELU_BWD, CUDNN_POINTWISE_IDENTITY}))
    return "the double has no pointwise mode " + std::to_string(mode);
  const bool backward = mode == CUDNN_POINTWISE_RELU_BWD;
  const Tensor& out = node.tensor(backward ? CUDNN_ATTR_OPERATION_POINTWISE_DXDESC
                                           : CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  for (const auto& [name, tensor] : node.tensors)
    if (!spreads_to(tensor, out)) return text_of(tensor) + " does not spread to " + text_of(out);
  if (node.tensors.size() !=
      (is_one_of(mode, {CUDNN_POINTWISE_RELU_FWD, CUDNN_POINTWISE_IDENTITY}) ? 2U : 3U))
    return "a pointwise operation has more tensors than its mode takes";
  for (const int factor :
       {CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2})
    if (node.real(factor) != 1) return "the double has no factors of pointwise operations";
  return "";
}

std::string objection_to_convolution(const Node& node) {
  std::set<cudnnDataType_t> types;
  for (const auto& [name, tensor] : node.tensors)
    if (!tensor.is_virtual) types.insert(tensor.type);
  if (types.size() != 1) return "the tensors of a convolution have several types";
  if (node.number(CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION)
    return "the double has no convolution that flips its filter";
  for (const auto& [name, real] : node.reals) {
    const bool is_beta = is_one_of(name, {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA});
    if (real != (is_beta ? 0 : 1)) return "the double has no factors of convolutions";
  }
  return "";
}

std::string objection_to_pool(const Node& node) {
  for (const int name : {CUDNN_ATTR_RESAMPLE_MODE, CUDNN_ATTR_RESAMPLE_PADDING_MODE,
                         CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, CUDNN_ATTR_RESAMPLE_POST_PADDINGS,
                         CUDNN_ATTR_RESAMPLE_STRIDES, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS})
    if (!node.numbers.contains(name)) return "a pool without attribute " + std::to_string(name);
  const std::int64_t mode = node.number(CUDNN_ATTR_RESAMPLE_MODE);
  const std::int64_t padding = node.number(CUDNN_ATTR_RESAMPLE_PADDING_MODE);
  const bool is_max = mode == CUDNN_RESAMPLE_MAXPOOL && padding == CUDNN_NEG_INF_PAD;
  const bool is_mean = mode == CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING && padding == CUDNN_ZERO_PAD;
  if (!is_max && !is_mean) return "the double has no such pool with such a padding";
  for (const int name : {CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, CUDNN_ATTR_RESAMPLE_POST_PADDINGS})
    for (const std::int64_t pad : node.list(name))
      if (pad < 0) return "a pool with a negative padding";
  for (const int name :
       {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC})
    if (node.has(name) && (!is_max || node.tensor(name).type != CUDNN_DATA_INT8))
      return "the double has indices of max pools in INT8 only";
  return "";
}

// cuDNN does not compare the statistics' shape with the input's when an operation is finalised.
std::string objection_to_statistics(const Node& node) {
  const Tensor& x = node.tensor(is_norm(node) ? CUDNN_ATTR_OPERATION_NORM_FWD_XDESC
                                              : CUDNN_ATTR_OPERATION_NORM_BWD_XDESC);
  const std::vector<std::int64_t> channels = {1, x.dims[1], 1, 1};
  for (const auto& [name, tensor] : node.tensors) {
    if (tensor.dims == x.dims || tensor.by_value) continue;
    if (tensor.dims != channels) return text_of(tensor) + " has not one number for each channel";
  }
  return "";
}

std::string objection_to_norm(const Node& node) {
  if (std::string why = objection_to_statistics(node); !why.empty()) return why;
  const int mode =
      is_norm(node) ? CUDNN_ATTR_OPERATION_NORM_FWD_MODE : CUDNN_ATTR_OPERATION_NORM_BWD_MODE;
  if (!node.numbers.contains(mode) || node.number(mode) != CUDNN_BATCH_NORM)
    return "the double has no norm but batch norm";
  // cuDNN 9.19 refuses these with "tunable_params.c % tunable_params.elements_per_ldg != 0".
  const Tensor& x = node.tensor(is_norm(node) ? CUDNN_ATTR_OPERATION_NORM_FWD_XDESC
                                              : CUDNN_ATTR_OPERATION_NORM_BWD_XDESC);
  if (x.dims[1] * (x.type == CUDNN_DATA_FLOAT ? 4 : 2) % 16 != 0)
    return "the channels of a batch norm are no multiple of 16 bytes";
  if (!is_norm(node))
    return node.has(CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC) ? "" : "a norm without its bias";
  if (!node.has(CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC)) return "a norm without its bias";
  std::size_t running = 0;
  for (const int name : {CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC,
                         CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC,
                         CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC,
                         CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC,
                         CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC})
    if (node.has(name)) ++running;
  if (running != 0 && running != 5) return "a norm with some running statistics and not others";
  return "";
}

std::string objection_to(const Node& node) {
  for (const int name : {CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_ATTR_POINTWISE_MATH_PREC,
                         CUDNN_ATTR_RESAMPLE_COMP_TYPE})
    if (node.numbers.contains(name) && node.number(name) != CUDNN_DATA_FLOAT)
      return "the double computes in FP32 only";
  if (is_pointwise(node)) return objection_to_pointwise(node);
  if (is_convolution(node)) return objection_to_convolution(node);
  if (is_norm(node) || node.type == CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR)
    return objection_to_norm(node);
  return objection_to_pool(node);
}

std::string objection_to(const Graph& graph, const Tensor& tensor) {
  if (tensor.dims.size() != 4) return text_of(tensor) + " has not four dimensions";
  const bool reads = graph.reads(tensor.uid);
  const bool writes = graph.writes(tensor.uid);
  if (tensor.is_virtual && !(reads && writes))
    return text_of(tensor) + " is virtual, and not both written and read";
  if (tensor.by_value && writes) return text_of(tensor) + " is by value, and written";
  if (reads && writes && !tensor.is_virtual)
    return text_of(tensor) + " is written and read, and not virtual";
  if (!is_real(tensor.type) && tensor.type != CUDNN_DATA_INT8)
    return text_of(tensor) + " has a type that the double does not compute with";
  for (std::size_t i = 0; i < 4; ++i)
    if (tensor.dims[i] > 1 && tensor.strides[i] == 0) return text_of(tensor) + " overlaps itself";
  return "";
}

// Norms read memory, and write the same type.
std::string objection_to_images(const Node& norm, int x_name, int y_name) {
  const Tensor& x = norm.tensor(x_name);
  const Tensor& y = norm.tensor(y_name);
  if (x.is_virtual) return "the input of a norm is virtual";
  if (!y.is_virtual && y.type != x.type) return "the output of a norm has another type";
  return "";
}

bool has_type(const Node& node, cudnnBackendDescriptorType_t type) {
  return node.type == type;
}

// The gradient of a norm stands alone, or behind the gradient of a ReLU whose input the norm is,
// computed again. What passes from one to the other has the type of the input.
std::string objection_to_norm_backward(const Graph& graph) {
  const Node& last = graph.nodes.back();
  if (!has_type(last, CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR))
    return "something stands behind the gradient of a norm";
  if (graph.nodes.size() == 1) return "";
  const bool is_pattern =
      graph.nodes.size() == 3 && is_norm(graph.nodes[0]) && is_pointwise(graph.nodes[1]) &&
      graph.nodes[0].number(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE) == CUDNN_NORM_FWD_INFERENCE &&
      graph.nodes[1].number(CUDNN_ATTR_POINTWISE_MODE) == CUDNN_POINTWISE_RELU_BWD;
  if (!is_pattern) return "the gradient of a norm stands in no pattern that is fused";
  const Tensor& dy = last.tensor(CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC);
  if (dy.type != last.tensor(CUDNN_ATTR_OPERATION_NORM_BWD_XDESC).type)
    return text_of(dy) + " passes to the gradient of a norm in another type than its input's";
  return "";
}

// Kernels of pointwise operations alone take NHWC.
std::string objection_to_layouts(const Graph& graph) {
  for (const auto& [uid, tensor] : graph.tensors)
    if (tensor.dims[1] == 1 ? elements(tensor) > 1 : tensor.strides[1] != 1)
      return text_of(tensor) + " is not in the order NHWC";
  return "";
}

// A fused kernel has one operation beside pointwise ones, or batch norm twice.
std::string objection_to_pattern(const Graph& graph) {
  std::vector<const Node*> main;
  for (const Node& node : graph.nodes)
    if (!is_pointwise(node)) main.push_back(&node);
  if (main.empty()) return objection_to_layouts(graph);
  for (const Node* const node : main) {
    if (has_type(*node, CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR)) {
      const std::string why = objection_to_images(*node, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC,
                                                  CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC);
      return why.empty() ? objection_to_norm_backward(graph) : why;
    }
    if (has_type(*node, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR) &&
        graph.nodes.size() > 1)
      return "a filter gradient is fused with something";
  }
  if (main.size() > 1) return "the graph is no pattern that is fused";
  if (!is_norm(*main[0])) return "";
  if (main[0]->number(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE) == CUDNN_NORM_FWD_INFERENCE)
    return "a norm that does not train";
  const Node& last = graph.nodes.back();
  if (is_pointwise(last) && last.number(CUDNN_ATTR_POINTWISE_MODE) == CUDNN_POINTWISE_ADD)
    return "an add behind a norm without a ReLU behind it";
  return objection_to_images(*main[0], CUDNN_ATTR_OPERATION_NORM_FWD_XDESC,
                             CUDNN_ATTR_OPERATION_NORM_FWD_YDESC);
}

// Whether each operation shares a tensor with those before it.
bool is_connected(const Graph& graph) {
  std::set<std::int64_t> reached;
  std::set<const Node*> taken;
  for (bool grows = true; grows;) {
    grows = false;
    for (const Node& node : graph.nodes) {
      const bool touches = taken.empty() || std::any_of(node.tensors.begin(), node.tensors.end(),
                                                        [&](const auto& t) {
                                                          return reached.contains(t.second.uid);
                                                        });
      if (!touches || !taken.insert(&node).second) continue;
      for (const auto& [name, tensor] : node.tensors) reached.insert(tensor.uid);
      grows = true;
    }
  }
  return taken.size() == graph.nodes.size();
}

// Bias and ReLU behind a convolution are compiled ahead where the bias has the storage type.
bool is_compiled_ahead(const Graph& graph) {
  if (!is_convolution(graph.nodes[0])) return false;
  std::set<cudnnDataType_t> types;
  for (const auto& [uid, tensor] : graph.tensors)
    if (!tensor.is_virtual) types.insert(tensor.type);
  return types.size() == 1;
}

std::int64_t workspace_of(const Graph& graph, std::int64_t engine) {
  if (std::all_of(graph.nodes.begin(), graph.nodes.end(), is_pointwise)) return 0;
  std::size_t largest = 0;
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const auto& [uid, tensor] : graph.tensors) {
    largest = std::max(largest, span_bytes(tensor));
    hash = (hash ^ static_cast<std::uint64_t>(elements(tensor))) * 1099511628211U;
  }
  constexpr std::uint64_t step = 16;
  const std::uint64_t part = largest / 8 * static_cast<std::uint64_t>(engine + 1);
  return static_cast<std::int64_t>(part / step * step + step * (1 + hash % 97));
}

}  // namespace

bool is_convolution(const Node& node) {
  return is_one_of(node.type, {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                               CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                               CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR});
}

std::string objection(const Graph& graph) {
  for (const auto& [uid, tensor] : graph.tensors)
    if (std::string why = objection_to(graph, tensor); !why.empty()) return why;
  for (const Node& node : graph.nodes)
    if (std::string why = objection_to(node); !why.empty()) return why;
  if (std::string why = objection_to_pattern(graph); !why.empty()) return why;
  if (!is_connected(graph)) return "the graph falls into parts";
  return "";
}

std::vector<Engine> engines_of(const Graph& graph) {
  if (!objection(graph).empty()) return {};
  std::vector<Engine> engines;
  if (is_convolution(graph.nodes[0]))
    engines = {
        {narrow_engine,
         {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION},
         {},
         0},
        {unsteady_engine,
         {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC},
         {},
         0},
        {tf32_engine, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, {}, 0},
        {exact_engine, {}, {}, 0}};
  else
    engines = {{exact_engine, {}, {}, 0}};
  for (Engine& engine : engines) {
    if (!is_compiled_ahead(graph))
      engine.behavior.push_back(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
    engine.workspace = workspace_of(graph, engine.index);
  }
  return engines;
}

}  // namespace cuda_on_host::cudnn

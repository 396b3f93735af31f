// Pools, norms and pointwise operations: what cuDNN requires of each when it is finalised. It looks at
// the tensors of their attributes whether these are finalised or not; a graph does not take them then.
#include <algorithm>
#include <optional>
#include <utility>

#include "tests/support/cuda_on_host/cudnn/finalise.h"
#include "tests/support/cuda_on_host/world.h"

namespace cuda_on_host::cudnn {
namespace {

List dims_of(const Content& operation, int name) {
  if (!operation.has(name)) return {};
  const Content& tensor = *operation.held(name);
  if (tensor.type != CUDNN_BACKEND_TENSOR_DESCRIPTOR)
    die("attribute " + std::to_string(name) + " of a cuDNN operation is no tensor");
  return list_of(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, {});
}

bool is_backward(std::int64_t mode) {
  return mode >= 200 && mode < 300;
}
bool is_binary(std::int64_t mode) {
  return mode == CUDNN_POINTWISE_ADD || (mode >= 0 && mode < 10 && mode != CUDNN_POINTWISE_SQRT) ||
         mode == CUDNN_POINTWISE_ATAN2 || (mode >= 300 && mode < 402);
}

struct PoolNames {
  int x, y, index, window;
};
constexpr PoolNames forward_names = {
    CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC,
    CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC};
constexpr PoolNames backward_names = {
    CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC,
    CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC};

constexpr cudnnStatus_t mismatch = CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;

void require_present(const Content& operation, std::initializer_list<int> names) {
  for (const int name : names)
    require(operation.has(name), "attribute " + std::to_string(name) + " is missing");
}

// Sizes and strides, except for strides of what has size 1.
using Layout = std::pair<List, List>;
Layout layout_of(const Content& operation, int name) {
  const List dims = dims_of(operation, name);
  List strides = list_of(*operation.held(name), CUDNN_ATTR_TENSOR_STRIDES, {});
  for (std::size_t i = 0; i < std::min(dims.size(), strides.size()); ++i)
    if (dims[i] == 1) strides[i] = 0;
  return {dims, strides};
}

// Those that are there, and the first of them, have one shape and one layout.
void require_one_layout(const Content& operation, std::initializer_list<int> names) {
  std::optional<Layout> first;
  for (const int name : names) {
    if (!operation.has(name)) continue;
    const Layout layout = layout_of(operation, name);
    if (!first) first = layout;
    require(layout == *first, mismatch, "attribute " + std::to_string(name) + " has another shape");
  }
}

// Tensors that are the same except for their unique ids and for strides of what has size 1.
bool are_alike(const Content& operation, int a, int b) {
  const Content& one = *operation.held(a);
  const Content& other = *operation.held(b);
  if (one.finalised != other.finalised || one.values.size() != other.values.size() ||
      layout_of(operation, a) != layout_of(operation, b))
    return false;
  return std::all_of(one.values.begin(), one.values.end(), [&](const auto& entry) {
    return entry.first == CUDNN_ATTR_TENSOR_UNIQUE_ID || entry.first == CUDNN_ATTR_TENSOR_STRIDES ||
           (other.has(entry.first) && other.value(entry.first).numbers == entry.second.numbers);
  });
}

// Those that are there, and the first of them, are alike.
void require_alike(const Content& operation, std::initializer_list<int> names) {
  const int* first = nullptr;
  for (const int& name : names) {
    if (!operation.has(name)) continue;
    if (first == nullptr) first = &name;
    require(are_alike(operation, *first, name), mismatch,
            "attribute " + std::to_string(name) + " differs from the other statistics");
  }
}

bool is_by_value(const Content& operation, int name) {
  const Content& tensor = *operation.held(name);
  return tensor.has(CUDNN_ATTR_TENSOR_IS_BY_VALUE) &&
         tensor.number(CUDNN_ATTR_TENSOR_IS_BY_VALUE) != 0;
}

}  // namespace

void finalise_pointwise(Content& content) {
  constexpr int x = CUDNN_ATTR_OPERATION_POINTWISE_XDESC;
  constexpr int y = CUDNN_ATTR_OPERATION_POINTWISE_YDESC;
  if (content.values.empty()) return;
  require_present(content, {CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR});
  const Content& held = *content.held(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  if (held.type != CUDNN_BACKEND_POINTWISE_DESCRIPTOR)
    die("the mode of a cuDNN pointwise operation is none");
  const std::int64_t mode =
      held.has(CUDNN_ATTR_POINTWISE_MODE) ? held.number(CUDNN_ATTR_POINTWISE_MODE) : 0;
  std::vector<int> names = {x, y};
  if (is_backward(mode))
    names = {x, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC};
  if (is_binary(mode)) names.push_back(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
  // One that has none of them passes.
  const bool has_none =
      std::none_of(names.begin(), names.end(), [&](int name) { return content.has(name); });
  for (const int name : names) {
    if (has_none) break;
    require_present(content, {name});
    require(dims_of(content, name).size() == dims_of(content, names[0]).size(),
            "the tensors of a pointwise operation differ in their number of dimensions");
  }
  put_real(content, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 1);
  put_real(content, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, 1);
}

// An empty one passes in cuDNN, and is then refused by nothing before the heuristics.
void finalise_resample_window(const Content& content) {
  if (content.values.empty()) return;
  constexpr cudnnStatus_t refused = CUDNN_STATUS_NOT_SUPPORTED;
  require(content.has(CUDNN_ATTR_RESAMPLE_MODE), refused, "a pool without its mode");
  require(content.has(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS), refused, "a pool without dimensions");
  const auto spatial = static_cast<std::size_t>(content.number(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS));
  for (const int name : {CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, CUDNN_ATTR_RESAMPLE_POST_PADDINGS,
                         CUDNN_ATTR_RESAMPLE_STRIDES, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS})
    require(!content.has(name) || content.value(name).size() == spatial, refused,
            "attribute " + std::to_string(name) + " of a pool is wrong");
}

void finalise_pool(const Content& content) {
  const bool backward = content.type == CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR;
  if (!backward && content.values.empty()) return;
  const PoolNames& names = backward ? backward_names : forward_names;
  require_present(content, {names.x, names.y});
  const List x = dims_of(content, names.x);
  const List y = dims_of(content, names.y);
  // Without a window, or with an empty one, a pool has windows of one pixel.
  Content pixel;
  pixel.type = CUDNN_BACKEND_RESAMPLE_DESCRIPTOR;
  const Content& window = content.has(names.window) ? *content.held(names.window) : pixel;
  if (window.type != CUDNN_BACKEND_RESAMPLE_DESCRIPTOR) die("the window of a cuDNN pool is none");
  const bool is_max = window.has(CUDNN_ATTR_RESAMPLE_MODE) &&
                      window.number(CUDNN_ATTR_RESAMPLE_MODE) == CUDNN_RESAMPLE_MAXPOOL;
  require(!backward || !is_max || content.has(names.index),
          "the gradient of a max pool without its index");
  const auto spatial =
      window.has(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS)
          ? static_cast<std::size_t>(window.number(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS))
          : std::max<std::size_t>(x.size(), 2) - 2;
  require(x.size() == spatial + 2 && y.size() == spatial + 2 && x[0] == y[0] && x[1] == y[1],
          "the input and output of a pool do not fit");
  const List none(spatial, 0);
  const List ones(spatial, 1);
  const List& pre = list_of(window, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, none);
  const List& post = list_of(window, CUDNN_ATTR_RESAMPLE_POST_PADDINGS, none);
  const List& stride = list_of(window, CUDNN_ATTR_RESAMPLE_STRIDES, ones);
  const List& size = list_of(window, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, ones);
  for (std::size_t i = 0; i < spatial; ++i)
    require(stride.at(i) > 0 &&
                (x[i + 2] + pre.at(i) + post.at(i) - size.at(i)) / stride[i] + 1 == y[i + 2],
            "the sizes of a pool's input, window and output do not fit");
  // Backward, more dimensions than the output has are not looked at.
  const List index = dims_of(content, names.index);
  require(
      !content.has(names.index) || index == y ||
          (backward && index.size() > y.size() && std::equal(y.begin(), y.end(), index.begin())),
      "the index of a pool has another shape than its output");
}

void finalise_norm(Content& content) {
  require_present(content, {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC});
  if (!content.has(CUDNN_ATTR_OPERATION_NORM_FWD_MODE))
    content.put(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, {CUDNN_LAYER_NORM});
  if (!content.has(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE))
    content.put(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE,
                {CUDNN_NORM_FWD_INFERENCE});
  const bool trains =
      content.number(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE) == CUDNN_NORM_FWD_TRAINING;
  if (trains)
    require_present(content, {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC,
                              CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC});
  require(!content.has(CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC) ||
              (trains && content.number(CUDNN_ATTR_OPERATION_NORM_FWD_MODE) == CUDNN_BATCH_NORM),
          "only a batch norm that trains has running statistics");
  require(content.has(CUDNN_ATTR_OPERATION_NORM_FWD_XDESC) &&
              content.has(CUDNN_ATTR_OPERATION_NORM_FWD_YDESC),
          mismatch, "a norm without its input or output");
  require_one_layout(content,
                     {CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC});
  require(!content.has(CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC) ||
              content.has(CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC),
          mismatch, "a norm has a mean and no deviation");
  require_alike(content, {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC,
                          CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC,
                          CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC,
                          CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC,
                          CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC,
                          CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC});
  require_one_layout(
      content, {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC});
  for (const int name : {CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC,
                         CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC})
    require(!content.has(name) || is_by_value(content, name),
            "attribute " + std::to_string(name) + " of a norm is no number of the host");
}

void finalise_norm_backward(const Content& content) {
  require_present(
      content, {CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC,
                CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC});
  for (const int name : {CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC,
                         CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC})
    require(content.has(name), mismatch, "the gradient of a norm without its input or gradients");
  require_one_layout(content,
                     {CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC,
                      CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC});
  require(content.has(CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC), mismatch,
          "a norm has a mean and no deviation");
  require_alike(content, {CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC,
                          CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC});
  require_one_layout(
      content, {CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC,
                CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC});
}

}  // namespace cuda_on_host::cudnn

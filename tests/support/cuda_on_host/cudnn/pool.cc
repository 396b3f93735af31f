// Pools, forward and backward. The index of a maximum is its place in the window, row by row; of
// equal ones the first. cuDNN does not say what its indices are.
#include <cmath>
#include <limits>
#include <utility>

#include "tests/support/cuda_on_host/cudnn/interpreter.h"
#include "tests/support/cuda_on_host/world.h"

namespace cuda_on_host::cudnn {
namespace {

struct Window {
  std::int64_t height, width, stride_y, stride_x, pad_y, pad_x;
  bool is_max;
};

Window window_of(const Node& node) {
  const auto& size = node.list(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS);
  const auto& stride = node.list(CUDNN_ATTR_RESAMPLE_STRIDES);
  const auto& pad = node.list(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS);
  const Window window{size[0],
                      size[1],
                      stride[0],
                      stride[1],
                      pad[0],
                      pad[1],
                      node.number(CUDNN_ATTR_RESAMPLE_MODE) == CUDNN_RESAMPLE_MAXPOOL};
  if (window.is_max && size[0] * size[1] > std::numeric_limits<std::int8_t>::max())
    die("a max pool's window of more places than its INT8 index can tell");
  return window;
}

// visit(place, y, x) for the places of the window of output pixel (oy, ox) that lie in the image.
template <class Visit>
void for_each_place(const Window& window, const Values& image, std::int64_t oy, std::int64_t ox,
                    Visit visit) {
  for (std::int64_t i = 0; i < window.height; ++i)
    for (std::int64_t j = 0; j < window.width; ++j) {
      const std::int64_t y = oy * window.stride_y - window.pad_y + i;
      const std::int64_t x = ox * window.stride_x - window.pad_x + j;
      if (y >= 0 && y < image.h && x >= 0 && x < image.w) visit(i * window.width + j, y, x);
    }
}

template <class Visit>
void for_each_pixel(const Values& values, Visit visit) {
  for (std::int64_t n = 0; n < values.n; ++n)
    for (std::int64_t y = 0; y < values.h; ++y)
      for (std::int64_t x = 0; x < values.w; ++x) visit(n, y, x);
}

}  // namespace

void compute_pool(const Node& node, AllValues& values) {
  const Window window = window_of(node);
  const Values& in = values.at(node.tensor(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC).uid);
  const Tensor& y_tensor = node.tensor(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC);
  Values out = Values::of(y_tensor);
  Values index = Values::of(y_tensor);
  const float share = 1 / static_cast<float>(window.height * window.width);
  for_each_pixel(out, [&](std::int64_t n, std::int64_t oy, std::int64_t ox) {
    float* const result = out.at(n, oy, ox);
    float* const place_of_it = index.at(n, oy, ox);
    if (window.is_max) std::fill_n(result, out.c, -std::numeric_limits<float>::infinity());
    for_each_place(window, in, oy, ox, [&](std::int64_t place, std::int64_t y, std::int64_t x) {
      const float* const from = in.at(n, y, x);
      for (std::int64_t c = 0; c < out.c; ++c) {
        if (!window.is_max) {
          result[c] += from[c];
        } else if (from[c] > result[c] || std::isnan(from[c])) {
          result[c] = from[c];
          place_of_it[c] = static_cast<float>(place);
        }
      }
    });
    if (!window.is_max)
      for (std::int64_t c = 0; c < out.c; ++c) result[c] *= share;
  });
  values[y_tensor.uid] = std::move(out);
  if (node.has(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC))
    values[node.tensor(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC).uid] = std::move(index);
}

void compute_pool_backward(const Node& node, AllValues& values) {
  const Window window = window_of(node);
  const Values& dy = values.at(node.tensor(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC).uid);
  const Values* const index =
      window.is_max ? &values.at(node.tensor(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC).uid)
                    : nullptr;
  const Tensor& dx_tensor = node.tensor(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC);
  Values dx = Values::of(dx_tensor);
  const float share = 1 / static_cast<float>(window.height * window.width);
  for_each_pixel(dy, [&](std::int64_t n, std::int64_t oy, std::int64_t ox) {
    const float* const from = dy.at(n, oy, ox);
    for_each_place(window, dx, oy, ox, [&](std::int64_t place, std::int64_t y, std::int64_t x) {
      float* const to = dx.at(n, y, x);
      for (std::int64_t c = 0; c < dx.c; ++c) {
        if (index == nullptr)
          to[c] += from[c] * share;
        else if (index->at(n, oy, ox)[c] == static_cast<float>(place))
          to[c] += from[c];
      }
    });
  });
  values[dx_tensor.uid] = std::move(dx);
}

}  // namespace cuda_on_host::cudnn

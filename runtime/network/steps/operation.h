// What cuDNN is asked to compute, as values: one operation is one cuDNN graph, and becomes one plan
// (planner.h). Nothing here needs cuDNN.
//
// Activations stand in NHWC order in one storage type, weights in KRSC order in the same type, and
// arithmetic is FP32. Scales, shifts, statistics and their gradients are FP32; biases have the
// storage type, for which cuDNN has compiled engines that add them in the epilogue.
// A vector is an image of one pixel, and a fully connected layer a convolution of a 1x1 kernel over
// it. Where the layer reads an image, its weights are KRSC as those of any convolution: K rows of
// R S C numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/base/precision.h"
#include "models/network/layer.h"

namespace paceline::runtime::steps {

// The shape of a batch of images.
struct Images {
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t height = 1;
  std::int64_t width = 1;
  bool operator==(const Images&) const = default;
};

enum class Pass { forward, backward };

// One of the three products of a convolution (Goodfellow 2016, 9.5): y = x * w; dx of dy and w; dw
// of x and dy. Forward, y = relu(x * w + bias) with either or both left out.
struct Convolution {
  enum class Product { forward, data_gradient, filter_gradient };
  Product product = Product::forward;
  Images x;
  Images y;
  models::Extent kernel;
  models::Extent stride{1, 1};
  models::Extent padding{0, 0};  // on each side
  models::Extent dilation{1, 1};
  std::int64_t groups = 1;
  bool bias = false;  // forward only
  bool relu = false;  // forward only
  bool operator==(const Convolution&) const = default;
};

// Batch norm in training (Ioffe 2015, algorithm 1): y = relu(norm(x) + residual), with either or
// both left out; it writes mean and inverse deviation of the batch, and moves the running statistics.
// Backward gives dx and the gradients of scale and shift. With relu, which excludes a residual, the
// sign of y is computed again from x; behind a residual ReluBackward comes first.
struct BatchNorm {
  Pass pass = Pass::forward;
  Images x;
  bool residual = false;  // forward only
  bool relu = false;
  bool operator==(const BatchNorm&) const = default;
};

// Max pools write, and read backward, where in its window each maximum was. Average pools divide by
// the whole window, padding included.
struct Pool {
  enum class Kind { max, average };
  Pass pass = Pass::forward;
  Kind kind = Kind::max;
  Images x;
  Images y;
  models::Extent kernel;
  models::Extent stride{1, 1};
  models::Extent padding{0, 0};  // above and left; below and right as far as the windows reach
  bool operator==(const Pool&) const = default;
};

// y = relu(x_0 + x_1 + ...), or without the ReLU.
struct Sum {
  Images x;
  int terms = 2;  // from 1; a single term has a ReLU
  bool relu = false;
  bool operator==(const Sum&) const = default;
};

// dx = (dy_0 + dy_1 + ...) where y > 0, else 0.
struct ReluBackward {
  Images x;
  int terms = 1;
  bool operator==(const ReluBackward&) const = default;
};

using Operation = std::variant<Convolution, BatchNorm, Pool, Sum, ReluBackward>;

// What an operand is to its operation. The numbers are the unique ids of cuDNN's tensors, by which
// an execution finds memory. They stand in stored plans: do not change them.
enum class Role {
  x = 1,
  w = 2,
  y = 3,
  bias = 4,
  dx = 5,
  dw = 6,
  dy = 7,
  residual = 9,
  scale = 10,
  shift = 11,
  mean = 12,
  inverse_deviation = 13,
  scale_gradient = 14,
  shift_gradient = 15,
  running_mean = 16,      // as it was before
  running_variance = 17,  // as it was before
  next_running_mean = 18,
  next_running_variance = 19,
  epsilon = 20,   // a number in host memory
  momentum = 21,  // a number in host memory
  index = 22,
  term = 100  // term i has 100 + i
};

// Text that tells operations with different plans apart:
// "conv-forward 64x256x56x56 -> 64x64x56x56 k1x1 s1x1 p0x0 bias relu fp16".
[[nodiscard]] std::string key(const Operation& operation, models::NumberType storage);

// FLOPs of a convolution's product, a multiply-add being two; 0 for other operations. Padding and
// zero channels count as if they were computed.
[[nodiscard]] std::int64_t flops(const Operation& operation);

}  // namespace paceline::runtime::steps

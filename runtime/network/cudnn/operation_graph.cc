// Tests: tests/runtime/cudnn/planner_test.cc.
#include "runtime/network/cudnn/operation_graph.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/base/error.h"

namespace paceline::runtime::cudnn {

using namespace steps;
namespace {

using Name = cudnnBackendAttributeName_t;

constexpr cudnnDataType_t arithmetic = CUDNN_DATA_FLOAT;
constexpr int first_virtual_id = 1000;

cudnnDataType_t data_type(models::NumberType type) {
  switch (type) {
    case models::NumberType::fp16:
      return CUDNN_DATA_HALF;
    case models::NumberType::bf16:
      return CUDNN_DATA_BFLOAT16;
    case models::NumberType::fp32:
      break;
  }
  return CUDNN_DATA_FLOAT;
}

std::array<std::int64_t, 2> pair(const models::Extent& e) {
  return {e.height, e.width};
}

class GraphMaker {
 public:
  GraphMaker(const Operation& operation, models::NumberType storage)
      : operation_(operation), storage_(data_type(storage)), storage_type_(storage) {}

  Descriptor make() {
    std::visit([this](const auto& o) { this->add(o); }, operation_);
    Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, std::span<const Descriptor>(nodes_));
    graph.finalise("the graph of " + key(operation_, storage_type_));
    return graph;
  }

 private:
  // Tensors. Dimensions stand in the order N C H W, strides make NHWC of them.
  struct Traits {
    bool is_virtual = false;
    bool is_number = false;  // in host memory
  };
  static Descriptor tensor(int id, const Images& i, cudnnDataType_t type, Traits traits) {
    Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
        .set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::array{i.batch, i.channels, i.height, i.width})
        .set(CUDNN_ATTR_TENSOR_STRIDES, std::array{i.channels * i.height * i.width, std::int64_t{1},
                                                   i.channels * i.width, i.channels})
        .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, std::int64_t{id})
        .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{traits.is_number ? 4 : 16});
    if (traits.is_virtual) tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
    if (traits.is_number) tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
    tensor.finalise("a tensor");
    return tensor;
  }
  [[nodiscard]] Descriptor stored(Role role, const Images& i) const {
    return tensor(static_cast<int>(role), i, storage_, {});
  }
  [[nodiscard]] Descriptor stored_term(int number, const Images& i) const {
    return tensor(static_cast<int>(Role::term) + number, i, storage_, {});
  }
  static Images of_channels(const Images& i) { return {1, i.channels, 1, 1}; }
  // FP32, one for each channel.
  static Descriptor by_channel(Role role, const Images& i) {
    return tensor(static_cast<int>(role), of_channels(i), CUDNN_DATA_FLOAT, {});
  }
  static Descriptor number(Role role) {
    return tensor(static_cast<int>(role), {1, 1, 1, 1}, CUDNN_DATA_FLOAT, {.is_number = true});
  }
  // What only the graph itself reads.
  Descriptor passing(const Images& i, cudnnDataType_t type = arithmetic) {
    return tensor(first_virtual_id + virtuals_++, i, type, {.is_virtual = true});
  }

  // Nodes.
  void node(Descriptor& operation, const char* what) {
    operation.finalise(std::string(what) + " of " + key(operation_, storage_type_));
    nodes_.push_back(std::move(operation));
  }

  void pointwise(cudnnPointwiseMode_t mode, const Descriptor& x, const Descriptor* b,
                 const Descriptor& y) {
    Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise_mode(mode))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    if (b != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
    node(operation, "the pointwise node");
  }
  // dx = dy where x > 0. The sign of a ReLU's output is that of its input, so that either will do.
  void relu_backward(const Descriptor& dy, const Descriptor& x, const Descriptor& dx) {
    Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation
        .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise_mode(CUDNN_POINTWISE_RELU_BWD))
        .set(CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, dy)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, dx);
    node(operation, "the gradient of the ReLU");
  }
  static Descriptor pointwise_mode(cudnnPointwiseMode_t mode) {
    Descriptor descriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    descriptor.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode)
        .set(CUDNN_ATTR_POINTWISE_MATH_PREC, arithmetic)
        .finalise("a pointwise mode");
    return descriptor;
  }
  // The sum of the first `terms` terms.
  Descriptor sum_of_terms(int terms, const Images& x) {
    Descriptor sum = stored_term(0, x);
    for (int i = 1; i < terms; ++i) {
      const Descriptor next = stored_term(i, x);
      Descriptor together = passing(x);
      pointwise(CUDNN_POINTWISE_ADD, sum, &next, together);
      sum = std::move(together);
    }
    return sum;
  }

  void add(const Convolution& c) {
    using P = Convolution::Product;
    const Descriptor w = tensor(
        static_cast<int>(c.product == P::filter_gradient ? Role::dw : Role::w),
        {c.y.channels, c.x.channels / c.groups, c.kernel.height, c.kernel.width}, storage_, {});
    switch (c.product) {
      case P::forward: {
        const bool plain = !c.bias && !c.relu;
        const Descriptor y = stored(Role::y, c.y);
        const Descriptor product = plain ? stored(Role::y, c.y) : passing(c.y);
        convolve(c, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, stored(Role::x, c.x),
                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, product,
                 {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA});
        epilogue(c, product, y);
        break;
      }
      case P::data_gradient:
        convolve(c, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, stored(Role::dx, c.x),
                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, w,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, stored(Role::dy, c.y),
                 {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA});
        break;
      case P::filter_gradient:
        convolve(c, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, stored(Role::x, c.x),
                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, w,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, stored(Role::dy, c.y),
                 {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA});
        break;
    }
  }
  struct ConvolutionNames {
    Name descriptor;
    Name alpha;
    Name beta;
  };
  void convolve(const Convolution& c, cudnnBackendDescriptorType_t type, Name x_name,
                const Descriptor& x, Name w_name, const Descriptor& w, Name y_name,
                const Descriptor& y, const ConvolutionNames& names) {
    Descriptor window(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    window.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, arithmetic)
        .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
        .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2})
        .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pair(c.padding))
        .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pair(c.padding))
        .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, pair(c.stride))
        .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, pair(c.dilation))
        .finalise("the window of " + key(operation_, storage_type_));
    Descriptor operation(type);
    operation.set(x_name, x)
        .set(w_name, w)
        .set(y_name, y)
        .set(names.descriptor, window)
        .set(names.alpha, 1.0F)
        .set(names.beta, 0.0F);
    node(operation, "the convolution");
  }
  void epilogue(const Convolution& c, const Descriptor& product, const Descriptor& y) {
    const Descriptor bias = stored(Role::bias, of_channels(c.y));
    if (c.bias && c.relu) {
      const Descriptor biased = passing(c.y);
      pointwise(CUDNN_POINTWISE_ADD, product, &bias, biased);
      pointwise(CUDNN_POINTWISE_RELU_FWD, biased, nullptr, y);
    } else if (c.bias) {
      pointwise(CUDNN_POINTWISE_ADD, product, &bias, y);
    } else if (c.relu) {
      pointwise(CUDNN_POINTWISE_RELU_FWD, product, nullptr, y);
    }
  }

  void add(const BatchNorm& b) { b.pass == Pass::forward ? forward(b) : backward(b); }

  Descriptor norm_forward(cudnnBackendNormFwdPhase_t phase, const Images& x, const Descriptor& y) {
    Descriptor operation(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, CUDNN_BATCH_NORM)
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, phase)
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, stored(Role::x, x))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, by_channel(Role::mean, x))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC,
             by_channel(Role::inverse_deviation, x))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, by_channel(Role::scale, x))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, by_channel(Role::shift, x))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, y);
    return operation;
  }
  void forward(const BatchNorm& b) {
    const Descriptor y = stored(Role::y, b.x);
    const bool plain = !b.residual && !b.relu;
    const Descriptor normed = plain ? stored(Role::y, b.x) : passing(b.x);
    Descriptor operation = norm_forward(CUDNN_NORM_FWD_TRAINING, b.x, normed);
    operation.set(CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, number(Role::epsilon))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC, number(Role::momentum))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC,
             by_channel(Role::running_mean, b.x))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC,
             by_channel(Role::running_variance, b.x))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC,
             by_channel(Role::next_running_mean, b.x))
        .set(CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC,
             by_channel(Role::next_running_variance, b.x));
    node(operation, "the batch norm");
    const Descriptor residual = stored(Role::residual, b.x);
    if (b.residual && b.relu) {
      const Descriptor sum = passing(b.x);
      pointwise(CUDNN_POINTWISE_ADD, normed, &residual, sum);
      pointwise(CUDNN_POINTWISE_RELU_FWD, sum, nullptr, y);
    } else if (b.residual) {
      pointwise(CUDNN_POINTWISE_ADD, normed, &residual, y);
    } else if (b.relu) {
      pointwise(CUDNN_POINTWISE_RELU_FWD, normed, nullptr, y);
    }
  }
  void backward(const BatchNorm& b) {
    PACELINE_ASSERT(!b.residual, "the gradient of a ReLU behind an add is an operation of its own");
    const Descriptor dy = stored(Role::dy, b.x);
    if (!b.relu) return norm_backward(b, dy);
    const Descriptor normed = passing(b.x);
    Descriptor again = norm_forward(CUDNN_NORM_FWD_INFERENCE, b.x, normed);
    node(again, "the batch norm computed again");
    const Descriptor gradient = passing(b.x, storage_);  // cuDNN has no engine for FP32 here
    relu_backward(dy, normed, gradient);
    norm_backward(b, gradient);
  }
  void norm_backward(const BatchNorm& b, const Descriptor& dy) {
    Descriptor operation(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_NORM_BWD_MODE, CUDNN_TYPE_NORM_MODE, CUDNN_BATCH_NORM)
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_XDESC, stored(Role::x, b.x))
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC, by_channel(Role::mean, b.x))
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC,
             by_channel(Role::inverse_deviation, b.x))
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC, dy)
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC, by_channel(Role::scale, b.x))
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC, by_channel(Role::scale_gradient, b.x))
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC, by_channel(Role::shift_gradient, b.x))
        .set(CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC, stored(Role::dx, b.x));
    node(operation, "the gradient of the batch norm");
  }

  void add(const Pool& p) {
    const bool is_max = p.kind == Pool::Kind::max;
    const auto reach = [](std::int64_t in, std::int64_t out, std::int64_t kernel,
                          std::int64_t stride, std::int64_t padding) {
      return std::max<std::int64_t>(0, (out - 1) * stride + kernel - in - padding);
    };
    const std::array end = {
        reach(p.x.height, p.y.height, p.kernel.height, p.stride.height, p.padding.height),
        reach(p.x.width, p.y.width, p.kernel.width, p.stride.width, p.padding.width)};
    Descriptor window(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
    window
        .set(CUDNN_ATTR_RESAMPLE_MODE, CUDNN_TYPE_RESAMPLE_MODE,
             is_max ? CUDNN_RESAMPLE_MAXPOOL : CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING)
        .set(CUDNN_ATTR_RESAMPLE_COMP_TYPE, arithmetic)
        .set(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, std::int64_t{2})
        .set(CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_TYPE_PADDING_MODE,
             is_max ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD)
        .set(CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, CUDNN_PROPAGATE_NAN)
        .set(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, pair(p.kernel))
        .set(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, pair(p.padding))
        .set(CUDNN_ATTR_RESAMPLE_POST_PADDINGS, end)
        .set(CUDNN_ATTR_RESAMPLE_STRIDES, pair(p.stride))
        .finalise("the window of " + key(operation_, storage_type_));
    const Descriptor index = tensor(static_cast<int>(Role::index), p.y, CUDNN_DATA_INT8, {});
    if (p.pass == Pass::forward) {
      Descriptor operation(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
      operation.set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, stored(Role::x, p.x))
          .set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, stored(Role::y, p.y))
          .set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, window);
      if (is_max) operation.set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC, index);
      node(operation, "the pool");
    } else {
      Descriptor operation(CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR);
      operation.set(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC, stored(Role::dx, p.x))
          .set(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC, stored(Role::dy, p.y))
          .set(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC, window);
      if (is_max) operation.set(CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC, index);
      node(operation, "the gradient of the pool");
    }
  }

  void add(const Sum& s) {
    PACELINE_ASSERT(s.terms >= 1 && (s.terms > 1 || s.relu), "a sum computes something");
    const Descriptor y = stored(Role::y, s.x);
    if (s.relu) {
      pointwise(CUDNN_POINTWISE_RELU_FWD, sum_of_terms(s.terms, s.x), nullptr, y);
    } else {
      const Descriptor last = stored_term(s.terms - 1, s.x);
      pointwise(CUDNN_POINTWISE_ADD, sum_of_terms(s.terms - 1, s.x), &last, y);
    }
  }
  void add(const ReluBackward& r) {
    const Descriptor dx = stored(Role::dx, r.x);
    relu_backward(sum_of_terms(r.terms, r.x), stored(Role::y, r.x), dx);
  }

  const Operation& operation_;
  cudnnDataType_t storage_;
  models::NumberType storage_type_;
  int virtuals_ = 0;
  std::vector<Descriptor> nodes_;
};

}  // namespace

Descriptor operation_graph(const Operation& operation, models::NumberType storage) {
  return GraphMaker(operation, storage).make();
}

}  // namespace paceline::runtime::cudnn

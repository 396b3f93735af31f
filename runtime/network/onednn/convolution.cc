// Convolutions and fully connected layers. Tests: tests/runtime/network_layers_test.cc.
#include <optional>

#include "runtime/network/onednn/compiler.h"
#include "runtime/network/onednn/layers.h"

namespace paceline::runtime::onednn {
namespace {

using dnnl::memory;
using dnnl::prop_kind;

memory::dims pair(const models::Extent& extent) {
  return {extent.height, extent.width};
}

// The layouts of a layer's parameters in the caller's array.
struct Plain {
  Description weights;
  Description bias;  // of no dimensions if there is none
  [[nodiscard]] bool has_bias() const { return bias.dims().size() == 1; }
};

Description plain_vector(std::int64_t size) {
  return {{size}, memory::data_type::f32, memory::format_tag::x};
}

// The same tensor in another data type, and in the layout that oneDNN finds best.
Description any_of(const Description& plain, memory::data_type type) {
  return {plain.dims(), type, memory::format_tag::any};
}
Description vector_of(const Description& plain, memory::data_type type) {
  return {plain.dims(), type, memory::format_tag::x};
}

// oneDNN's vectors have two dimensions; ours are images of one pixel, of the same bytes.
Description as_image(const Description& layout) {
  if (layout.dims().size() == 4) return layout;
  return {{layout.dims()[0], layout.dims()[1], 1, 1}, layout.data_type(), memory::format_tag::nchw};
}
Memory output_gradient_as(Compiler& compiler, const Description& wanted, Steps& steps) {
  if (wanted.dims().size() == 4) return compiler.output_gradient(wanted, steps);
  return compiler.workshop().in_block(compiler.output().gradient, wanted);
}

template <class Forward>
void add_forward_steps(Compiler& compiler, const Forward& forward, const Plain& plain) {
  const Description output_layout = as_image(forward.dst_desc());
  Step::Arguments arguments{
      {DNNL_ARG_SRC, compiler.forward_input(0, forward.src_desc())},
      {DNNL_ARG_WEIGHTS,
       compiler.working_copy(ParameterRole::weight, plain.weights, forward.weights_desc())}};
  if (plain.has_bias())
    arguments.emplace(DNNL_ARG_BIAS,
                      compiler.working_copy(ParameterRole::bias, plain.bias, forward.bias_desc()));
  compiler.keep_input(0);
  compiler.make_output(output_layout);
  arguments.emplace(DNNL_ARG_DST,
                    compiler.workshop().in_block(compiler.output().data, forward.dst_desc()));
  compiler.add_forward(compiler.workshop().step(forward, arguments));
  compiler.round_output();
}

template <class BackwardWeights>
void add_weight_gradient_steps(Compiler& compiler, const BackwardWeights& backward,
                               const Plain& plain) {
  Steps& steps = compiler.program().parameter_gradients;
  Step::Arguments arguments{
      {DNNL_ARG_SRC, compiler.kept_input(0, backward.src_desc(), steps)},
      {DNNL_ARG_DIFF_DST, output_gradient_as(compiler, backward.diff_dst_desc(), steps)}};
  const Memory weights = compiler.parameter_gradient(ParameterRole::weight, plain.weights,
                                                     backward.diff_weights_desc());
  arguments.emplace(DNNL_ARG_DIFF_WEIGHTS, weights);
  Memory bias;
  if (plain.has_bias()) {
    bias = compiler.parameter_gradient(ParameterRole::bias, plain.bias, backward.diff_bias_desc());
    arguments.emplace(DNNL_ARG_DIFF_BIAS, bias);
  }
  steps.push_back(compiler.workshop().step(backward, arguments));
  if (plain.has_bias()) compiler.deliver(ParameterRole::bias, plain.bias, bias);
  compiler.deliver(ParameterRole::weight, plain.weights, weights);
}

template <class BackwardData>
void add_data_gradient_steps(Compiler& compiler, const BackwardData& backward, const Plain& plain) {
  Steps& steps = compiler.program().data_gradients;
  const GradientPart part = compiler.gradient_part(0, backward.diff_src_desc());
  const Step::Arguments arguments{
      {DNNL_ARG_DIFF_DST, output_gradient_as(compiler, backward.diff_dst_desc(), steps)},
      {DNNL_ARG_WEIGHTS,
       compiler.working_copy(ParameterRole::weight, plain.weights, backward.weights_desc())},
      {DNNL_ARG_DIFF_SRC, part.memory}};
  steps.push_back(compiler.workshop().step(backward, arguments));
  compiler.deliver(part);
}

class ConvolutionPlanner : public LayerPlanner {
 public:
  explicit ConvolutionPlanner(const models::Convolution& layer) : layer_(layer) {}

  void plan_forward(Compiler& compiler) override {
    describe_parameters(compiler.input(0).shape.channels);
    const memory::data_type type = compiler.storage();
    const Description source = compiler.any_layout(compiler.input(0).shape);
    const Description target = compiler.any_layout(compiler.output().shape);
    const Description weights = any_of(plain_.weights, type);
    const auto algorithm = dnnl::algorithm::convolution_direct;
    using dnnl::convolution_forward;
    const auto kind = prop_kind::forward_training;
    const convolution_forward::desc description =
        plain_.has_bias()
            ? convolution_forward::desc(kind, algorithm, source, weights,
                                        vector_of(plain_.bias, type), target, pair(layer_.stride),
                                        dilation(), pair(layer_.padding), pair(layer_.padding))
            : convolution_forward::desc(kind, algorithm, source, weights, target,
                                        pair(layer_.stride), dilation(), pair(layer_.padding),
                                        pair(layer_.padding));
    const bool with_relu = compiler.takes_over_relu(ReluState::forward_done);
    forward_.emplace(description, Workshop::attributes(with_relu), compiler.engine());
    add_forward_steps(compiler, *forward_, plain_);
  }

  void plan_backward(Compiler& compiler) override {
    plan_weight_gradient(compiler);
    if (!compiler.input(0).needs_gradient) return;
    using dnnl::convolution_backward_data;
    const convolution_backward_data::desc description(
        dnnl::algorithm::convolution_direct, compiler.any_layout(compiler.input(0).shape),
        any_of(plain_.weights, compiler.storage()), compiler.any_layout(compiler.output().shape),
        pair(layer_.stride), dilation(), pair(layer_.padding), pair(layer_.padding));
    add_data_gradient_steps(compiler,
                            convolution_backward_data::primitive_desc(
                                description, Workshop::attributes(), compiler.engine(), *forward_),
                            plain_);
  }

 private:
  void describe_parameters(std::int64_t input_channels) {
    const models::Convolution& c = layer_;
    const memory::dims one{c.channels, input_channels, c.kernel.height, c.kernel.width};
    const memory::dims grouped{c.groups, c.channels / c.groups, input_channels / c.groups,
                               c.kernel.height, c.kernel.width};
    plain_.weights = c.groups == 1
                         ? Description(one, memory::data_type::f32, memory::format_tag::oihw)
                         : Description(grouped, memory::data_type::f32, memory::format_tag::goihw);
    if (c.bias) plain_.bias = plain_vector(c.channels);
  }
  // oneDNN counts the elements between.
  [[nodiscard]] memory::dims dilation() const {
    return {layer_.dilation.height - 1, layer_.dilation.width - 1};
  }

  void plan_weight_gradient(Compiler& compiler) {
    const Description source = compiler.any_layout(compiler.input(0).shape);
    const Description target = compiler.any_layout(compiler.output().shape);
    const Description weights = any_of(plain_.weights, memory::data_type::f32);
    const auto algorithm = dnnl::algorithm::convolution_direct;
    using dnnl::convolution_backward_weights;
    const convolution_backward_weights::desc description =
        plain_.has_bias()
            ? convolution_backward_weights::desc(algorithm, source, weights, plain_.bias, target,
                                                 pair(layer_.stride), dilation(),
                                                 pair(layer_.padding), pair(layer_.padding))
            : convolution_backward_weights::desc(algorithm, source, weights, target,
                                                 pair(layer_.stride), dilation(),
                                                 pair(layer_.padding), pair(layer_.padding));
    add_weight_gradient_steps(
        compiler,
        convolution_backward_weights::primitive_desc(description, Workshop::attributes(),
                                                     compiler.engine(), *forward_),
        plain_);
  }

  models::Convolution layer_;
  Plain plain_;
  std::optional<dnnl::convolution_forward::primitive_desc> forward_;
};

// A fully connected layer on an image is a convolution whose kernel covers the image.
class FullyConnectedPlanner : public LayerPlanner {
 public:
  explicit FullyConnectedPlanner(const models::FullyConnected& layer) : layer_(layer) {}

  void plan_forward(Compiler& compiler) override {
    const models::Shape& in = compiler.input(0).shape;
    plain_.weights = {{layer_.outputs, in.channels, in.height, in.width},
                      memory::data_type::f32,
                      memory::format_tag::oihw};
    if (layer_.bias) plain_.bias = plain_vector(layer_.outputs);
    const memory::data_type type = compiler.storage();
    const Description source = compiler.any_layout(in);
    const Description weights = any_of(plain_.weights, type);
    const auto kind = prop_kind::forward_training;
    using dnnl::inner_product_forward;
    const inner_product_forward::desc description =
        plain_.has_bias()
            ? inner_product_forward::desc(kind, source, weights, vector_of(plain_.bias, type),
                                          target(compiler))
            : inner_product_forward::desc(kind, source, weights, target(compiler));
    const bool with_relu = compiler.takes_over_relu(ReluState::forward_done);
    forward_.emplace(description, Workshop::attributes(with_relu), compiler.engine());
    add_forward_steps(compiler, *forward_, plain_);
  }

  void plan_backward(Compiler& compiler) override {
    plan_weight_gradient(compiler);
    if (!compiler.input(0).needs_gradient) return;
    using dnnl::inner_product_backward_data;
    const inner_product_backward_data::desc description(
        compiler.any_layout(compiler.input(0).shape), any_of(plain_.weights, compiler.storage()),
        target(compiler));
    add_data_gradient_steps(compiler,
                            inner_product_backward_data::primitive_desc(
                                description, Workshop::attributes(), compiler.engine(), *forward_),
                            plain_);
  }

 private:
  [[nodiscard]] Description target(const Compiler& compiler) const {
    return {{compiler.options().batch, layer_.outputs}, compiler.storage(), memory::format_tag::nc};
  }

  void plan_weight_gradient(Compiler& compiler) {
    const Description source = compiler.any_layout(compiler.input(0).shape);
    const Description weights = any_of(plain_.weights, memory::data_type::f32);
    using dnnl::inner_product_backward_weights;
    const inner_product_backward_weights::desc description =
        plain_.has_bias()
            ? inner_product_backward_weights::desc(source, weights, plain_.bias, target(compiler))
            : inner_product_backward_weights::desc(source, weights, target(compiler));
    add_weight_gradient_steps(
        compiler,
        inner_product_backward_weights::primitive_desc(description, Workshop::attributes(),
                                                       compiler.engine(), *forward_),
        plain_);
  }

  models::FullyConnected layer_;
  Plain plain_;
  std::optional<dnnl::inner_product_forward::primitive_desc> forward_;
};

}  // namespace

Planner make_planner(const models::Convolution& layer) {
  return std::make_unique<ConvolutionPlanner>(layer);
}
Planner make_planner(const models::FullyConnected& layer) {
  return std::make_unique<FullyConnectedPlanner>(layer);
}

}  // namespace paceline::runtime::onednn

// Linear layers on the elements of a sequence, and on the table of an embedding.
// Tests: tests/runtime/network_sequences_test.cc.
#include <optional>

#include "runtime/network/onednn/compiler.h"
#include "runtime/network/onednn/layers.h"

namespace paceline::runtime::onednn {
namespace {

using dnnl::memory;
using dnnl::prop_kind;

// y = x W^T + b for each row x. The weight is the layer's own, or the table of an embedding, whose gradient is then
// complete when the embedding has added its part.
class LinearPlanner : public LayerPlanner {
 public:
  // `outputs` is 0 where the table says it.
  LinearPlanner(std::int64_t outputs, bool has_bias, bool is_tied)
      : outputs_(outputs), has_bias_(has_bias), is_tied_(is_tied) {}

  void plan_forward(Compiler& compiler) override {
    const models::Shape& in = compiler.input(0).shape;
    weight_ = is_tied_ ? compiler.parameter(compiler.producer(1), ParameterRole::weight)
                       : compiler.parameter(ParameterRole::weight);
    if (is_tied_) outputs_ = compiler.place(weight_).shape.front();
    plain_weight_ = {{outputs_, in.channels}, memory::data_type::f32, memory::format_tag::nc};
    plain_bias_ = {{outputs_}, memory::data_type::f32, memory::format_tag::x};
    using dnnl::inner_product_forward;
    const auto kind = prop_kind::forward_training;
    const Description source = compiler.rows(in);
    const Description target = compiler.rows(compiler.output().shape);
    const Description weight = any_weight(compiler.storage());
    const Description bias({outputs_}, compiler.storage(), memory::format_tag::x);
    const bool adds_bias = has_bias_ && compiler.adds_bias();
    forward_.emplace(adds_bias ? inner_product_forward::desc(kind, source, weight, bias, target)
                               : inner_product_forward::desc(kind, source, weight, target),
                     Workshop::attributes(), compiler.engine());
    Workshop& workshop = compiler.workshop();
    const Memory data = compiler.forward_input(0, compiler.row_layout(in));
    compiler.keep_input(0);
    const Memory made = compiler.make_output(compiler.row_layout(compiler.output().shape));
    Step::Arguments arguments{
        {DNNL_ARG_SRC, workshop.same_bytes(data, source)},
        {DNNL_ARG_WEIGHTS, compiler.working_copy(weight_, plain_weight_, forward_->weights_desc())},
        {DNNL_ARG_DST, workshop.same_bytes(made, target)}};
    if (adds_bias)
      arguments.emplace(DNNL_ARG_BIAS,
                        compiler.working_copy(ParameterRole::bias, plain_bias_, bias));
    compiler.add_forward(workshop.step(*forward_, arguments));
    compiler.round_output();
  }

  void plan_backward(Compiler& compiler) override {
    plan_parameter_gradients(compiler);
    if (compiler.input(0).needs_gradient) plan_data_gradient(compiler);
  }

 private:
  [[nodiscard]] Description any_weight(memory::data_type type) const {
    return {plain_weight_.dims(), type, memory::format_tag::any};
  }
  // The gradient of the output as rows.
  static Memory output_rows(Compiler& compiler, Steps& steps) {
    const models::Shape& out = compiler.output().shape;
    return compiler.workshop().same_bytes(compiler.output_gradient(compiler.row_layout(out), steps),
                                          compiler.rows(out));
  }

  void plan_parameter_gradients(Compiler& compiler) {
    const models::Shape& in = compiler.input(0).shape;
    const Description source = compiler.rows(in);
    const Description target = compiler.rows(compiler.output().shape);
    const Description weight = any_weight(memory::data_type::f32);
    using dnnl::inner_product_backward_weights;
    const inner_product_backward_weights::primitive_desc description(
        has_bias_ ? inner_product_backward_weights::desc(source, weight, plain_bias_, target)
                  : inner_product_backward_weights::desc(source, weight, target),
        Workshop::attributes(), compiler.engine(), *forward_);
    Workshop& workshop = compiler.workshop();
    Steps& steps = compiler.program().parameter_gradients;
    const Memory data = compiler.kept_input(0, compiler.row_layout(in), steps);
    const Memory written =
        compiler.parameter_gradient(weight_, plain_weight_, description.diff_weights_desc());
    Step::Arguments arguments{{DNNL_ARG_SRC, workshop.same_bytes(data, source)},
                              {DNNL_ARG_DIFF_DST, output_rows(compiler, steps)},
                              {DNNL_ARG_DIFF_WEIGHTS, written}};
    Memory bias;
    if (has_bias_) {
      bias = compiler.parameter_gradient(ParameterRole::bias, plain_bias_, plain_bias_);
      arguments.emplace(DNNL_ARG_DIFF_BIAS, bias);
    }
    steps.push_back(workshop.step(description, arguments));
    if (has_bias_) compiler.deliver(ParameterRole::bias, plain_bias_, bias);
    if (is_tied_)
      compiler.bring(weight_, plain_weight_, written);
    else
      compiler.deliver(ParameterRole::weight, plain_weight_, written);
  }

  void plan_data_gradient(Compiler& compiler) {
    const models::Shape& in = compiler.input(0).shape;
    using dnnl::inner_product_backward_data;
    const inner_product_backward_data::primitive_desc description(
        {compiler.rows(in), any_weight(compiler.storage()), compiler.rows(compiler.output().shape)},
        Workshop::attributes(), compiler.engine(), *forward_);
    Workshop& workshop = compiler.workshop();
    Steps& steps = compiler.program().data_gradients;
    const GradientPart part = compiler.gradient_part(0, compiler.row_layout(in));
    steps.push_back(workshop.step(
        description, {{DNNL_ARG_DIFF_DST, output_rows(compiler, steps)},
                      {DNNL_ARG_WEIGHTS,
                       compiler.working_copy(weight_, plain_weight_, description.weights_desc())},
                      {DNNL_ARG_DIFF_SRC, workshop.same_bytes(part.memory, compiler.rows(in))}}));
    compiler.deliver(part);
  }

  std::int64_t outputs_;
  bool has_bias_;
  bool is_tied_;
  int weight_ = 0;  // index of the parameter
  Description plain_weight_;
  Description plain_bias_;
  std::optional<dnnl::inner_product_forward::primitive_desc> forward_;
};

}  // namespace

Planner make_planner(const models::Linear& layer) {
  return std::make_unique<LinearPlanner>(layer.outputs, layer.bias, false);
}
Planner make_planner(const models::TiedLinear& layer) {
  return std::make_unique<LinearPlanner>(0, layer.bias, true);
}

}  // namespace paceline::runtime::onednn

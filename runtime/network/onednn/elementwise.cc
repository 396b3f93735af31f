// ReLU, GELU, SiLU, dropout, add and multiply. Tests: tests/runtime/network_layers_test.cc, network_sequences_test.cc.
#include <algorithm>
#include <optional>

#include "runtime/network/dropout.h"
#include "runtime/network/onednn/compiler.h"
#include "runtime/network/onednn/layers.h"

namespace paceline::runtime::onednn {
namespace {

using dnnl::memory;

class ReluPlanner : public LayerPlanner {
 public:
  void plan_forward(Compiler& compiler) override {
    const Description layout = compiler.input_layout(0);
    if (compiler.relu_state() == ReluState::own) {
      const dnnl::eltwise_forward::primitive_desc description(
          {dnnl::prop_kind::forward_training, algorithm, layout, 0.0F}, Workshop::attributes(),
          compiler.engine());
      const Memory source = compiler.forward_input(0, layout);
      const Block block = compiler.may_overwrite(0) ? compiler.input(0).data : no_block;
      const Memory target = compiler.make_output(layout, block);
      compiler.add_forward(
          compiler.workshop().step(description, {{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, target}}));
    } else {
      compiler.make_view(layout);
    }
    if (compiler.relu_state() != ReluState::done) compiler.keep_output();
  }

  void plan_backward(Compiler& compiler) override {
    if (compiler.relu_state() == ReluState::done) {
      compiler.pass_gradient_through_view();
      return;
    }
    const Description layout = compiler.output().layout;
    const dnnl::eltwise_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, algorithm, layout, 0.0F}, compiler.engine());
    const dnnl::eltwise_backward::primitive_desc description(
        {algorithm, layout, layout, 0.0F}, Workshop::attributes(), compiler.engine(), forward);
    Steps& steps = compiler.program().data_gradients;
    const Memory gradient = compiler.output_gradient(layout, steps);
    const GradientPart part = compiler.gradient_part_in_place(0, layout);
    steps.push_back(compiler.workshop().step(description, {{DNNL_ARG_DST, compiler.kept_output()},
                                                           {DNNL_ARG_DIFF_DST, gradient},
                                                           {DNNL_ARG_DIFF_SRC, part.memory}}));
    compiler.deliver(part);
  }

 private:
  static constexpr auto algorithm = dnnl::algorithm::eltwise_relu_use_dst_for_bwd;
};

// x times a smooth step: the share of a normal distribution below x, by the error function (GELU, Hendrycks 2016); or the
// sigmoid of x (SiLU, Elfwing 2018).
class SmoothStepPlanner : public LayerPlanner {
 public:
  explicit SmoothStepPlanner(dnnl::algorithm algorithm) : algorithm_(algorithm) {}

  void plan_forward(Compiler& compiler) override {
    const Description layout = compiler.input_layout(0);
    forward_.emplace(dnnl::eltwise_forward::desc(dnnl::prop_kind::forward_training, algorithm_,
                                                 layout, steepness),
                     Workshop::attributes(), compiler.engine());
    const Memory source = compiler.forward_input(0, layout);
    compiler.keep_input(0);
    compiler.add_forward(compiler.workshop().step(
        *forward_, {{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, compiler.make_output(layout)}}));
    compiler.round_output();
  }

  void plan_backward(Compiler& compiler) override {
    const Description layout = compiler.output().layout;
    const dnnl::eltwise_backward::primitive_desc description(
        {algorithm_, layout, layout, steepness}, Workshop::attributes(), compiler.engine(),
        *forward_);
    Steps& steps = compiler.program().data_gradients;
    const Memory gradient = compiler.output_gradient(layout, steps);
    const GradientPart part = compiler.gradient_part_in_place(0, layout);
    steps.push_back(compiler.workshop().step(description,
                                             {{DNNL_ARG_SRC, compiler.kept_input(0, layout, steps)},
                                              {DNNL_ARG_DIFF_DST, gradient},
                                              {DNNL_ARG_DIFF_SRC, part.memory}}));
    compiler.deliver(part);
  }

 private:
  static constexpr float steepness = 1;  // of the sigmoid
  dnnl::algorithm algorithm_;
  std::optional<dnnl::eltwise_forward::primitive_desc> forward_;
};

// Dropout works in FP32 and the plain layout, so that an element's place in a mask does not depend on the
// layout.
class DropoutPlanner : public LayerPlanner {
 public:
  explicit DropoutPlanner(const models::Dropout& layer) : probability_(layer.probability) {}

  void plan_forward(Compiler& compiler) override {
    const Description plain =
        compiler.plain_layout(compiler.input(0).shape, memory::data_type::f32);
    const Description layout = compiler.input_layout(0);
    const Memory source = compiler.forward_input(0, plain);
    const Memory target = compiler.make_output(layout);
    const Memory dropped = layout == plain ? target : compiler.workshop().temporary(plain);
    LayerProgram& program = compiler.program();
    program.training.push_back(masked(compiler.layer(), source, dropped));
    if (layout != plain) program.training.push_back(compiler.workshop().reorder(dropped, target));
    program.evaluation.push_back(compiler.workshop().reorder(source, target));
    compiler.round_output();
  }

  void plan_backward(Compiler& compiler) override {
    const Description plain =
        compiler.plain_layout(compiler.input(0).shape, memory::data_type::f32);
    Steps& steps = compiler.program().data_gradients;
    const Memory gradient = compiler.output_gradient(plain, steps);
    const GradientPart part = compiler.gradient_part_in_place(0, plain);
    steps.push_back(masked(compiler.layer(), gradient, part.memory));
    compiler.deliver(part);
  }

 private:
  [[nodiscard]] Step masked(int layer, const Memory& source, const Memory& target) const {
    const double probability = probability_;
    return Step([=](Call& call) {
      drop_out({.seed = call.seed, .layer = layer, .probability = probability}, floats(source),
               floats(target));
    });
  }

  double probability_;
};

// Whether blocks of channels are filled up with zeros.
bool is_padded(const Description& layout) {
  const memory::dims dims = layout.dims();
  return !std::equal(dims.begin(), dims.end(), layout.data.padded_dims);
}

class AddPlanner : public LayerPlanner {
 public:
  void plan_forward(Compiler& compiler) override {
    const int first = addend_to_overwrite(compiler);
    const Description layout = compiler.input_layout(first);
    Memory sum = compiler.forward_input(first, layout);
    const Block block = compiler.may_overwrite(first) ? compiler.input(first).data : no_block;
    const Memory target = compiler.make_output(layout, block);
    // oneDNN 2.6.3 is wrong on padded layouts: it applies the ReLU to other elements than it adds.
    const bool with_relu = !is_padded(layout) && compiler.takes_over_relu(ReluState::forward_done);
    int left = compiler.input_count() - 1;
    for (int i = 0; i < compiler.input_count(); ++i) {
      if (i == first) continue;
      const dnnl::binary::primitive_desc description(
          {dnnl::algorithm::binary_add, layout, layout, layout},
          Workshop::attributes(with_relu && --left == 0), compiler.engine());
      compiler.add_forward(compiler.workshop().step(
          description, {{DNNL_ARG_SRC_0, sum},
                        {DNNL_ARG_SRC_1, compiler.forward_input(i, layout)},
                        {DNNL_ARG_DST, target}}));
      compiler.round_output();
      sum = target;
    }
  }

  void plan_backward(Compiler& compiler) override { compiler.pass_gradient_on(); }

 private:
  [[nodiscard]] static int addend_to_overwrite(const Compiler& compiler) {
    for (int i = 0; i < compiler.input_count(); ++i)
      if (compiler.may_overwrite(i)) return i;
    return 0;
  }
};

// The product of two inputs of equal shape.
class MultiplyPlanner : public LayerPlanner {
 public:
  void plan_forward(Compiler& compiler) override {
    const Description layout = compiler.input_layout(0);
    const Memory first = compiler.forward_input(0, layout);
    const Memory second = compiler.forward_input(1, layout);
    compiler.keep_input(0);
    compiler.keep_input(1);
    compiler.add_forward(product(compiler, first, second, compiler.make_output(layout)));
    compiler.round_output();
  }

  void plan_backward(Compiler& compiler) override {
    const Description layout = compiler.output().layout;
    Steps& steps = compiler.program().data_gradients;
    const Memory gradient = compiler.output_gradient(layout, steps);
    for (const int i : {0, 1}) {
      if (!compiler.input(i).needs_gradient) continue;
      const Memory other = compiler.kept_input(1 - i, layout, steps);
      const GradientPart part = compiler.gradient_part(i, layout);
      steps.push_back(product(compiler, gradient, other, part.memory));
      compiler.deliver(part);
    }
  }

 private:
  static Step product(Compiler& compiler, const Memory& a, const Memory& b, const Memory& to) {
    const Description layout = to.get_desc();
    const dnnl::binary::primitive_desc description(
        {dnnl::algorithm::binary_mul, layout, layout, layout}, Workshop::attributes(),
        compiler.engine());
    return compiler.workshop().step(description,
                                    {{DNNL_ARG_SRC_0, a}, {DNNL_ARG_SRC_1, b}, {DNNL_ARG_DST, to}});
  }
};

}  // namespace

Planner make_planner(const models::Relu&) {
  return std::make_unique<ReluPlanner>();
}
Planner make_planner(const models::Gelu&) {
  return std::make_unique<SmoothStepPlanner>(dnnl::algorithm::eltwise_gelu_erf);
}
Planner make_planner(const models::Silu&) {
  return std::make_unique<SmoothStepPlanner>(dnnl::algorithm::eltwise_swish);
}
Planner make_planner(const models::Multiply&) {
  return std::make_unique<MultiplyPlanner>();
}
Planner make_planner(const models::Dropout& layer) {
  return std::make_unique<DropoutPlanner>(layer);
}
Planner make_planner(const models::Add&) {
  return std::make_unique<AddPlanner>();
}

}  // namespace paceline::runtime::onednn

// Concat and flatten. Tests: tests/runtime/network_layers_test.cc.
#include "models/base/to_size.h"
#include "runtime/network/onednn/compiler.h"
#include "runtime/network/onednn/layers.h"

namespace paceline::runtime::onednn {
namespace {

using dnnl::memory;

class ConcatPlanner : public LayerPlanner {
 public:
  void plan_forward(Compiler& compiler) override {
    std::vector<Description> sources;
    for (int i = 0; i < compiler.input_count(); ++i) sources.push_back(compiler.input_layout(i));
    const dnnl::concat::primitive_desc description(compiler.any_layout(compiler.output().shape),
                                                   channel_dimension, sources, compiler.engine(),
                                                   Workshop::attributes());
    Step::Arguments arguments;
    for (int i = 0; i < compiler.input_count(); ++i)
      arguments.emplace(DNNL_ARG_MULTIPLE_SRC + i, compiler.forward_input(i, sources[to_size(i)]));
    arguments.emplace(DNNL_ARG_DST, compiler.make_output(description.dst_desc()));
    compiler.add_forward(compiler.workshop().step(description, arguments));
  }

  void plan_backward(Compiler& compiler) override {
    memory::dims offsets{0, 0, 0, 0};
    Workshop& workshop = compiler.workshop();
    Steps& steps = compiler.program().data_gradients;
    const Value& made = compiler.output();
    for (int i = 0; i < compiler.input_count(); ++i) {
      const Value& to = compiler.input(i);
      const memory::dims dims = compiler.dims(to.shape);
      if (to.needs_gradient) {
        const GradientPart part = compiler.gradient_part(i, to.layout);
        const Description slice = made.layout.submemory_desc(dims, offsets, true);
        if (slice) {
          steps.push_back(workshop.reorder(workshop.in_block(made.gradient, slice), part.memory));
        } else {
          slice_plainly(compiler, offsets, part);
        }
        compiler.deliver(part);
      }
      offsets[channel_dimension] += dims[channel_dimension];
    }
  }

 private:
  static constexpr int channel_dimension = 1;

  // A layout in blocks of channels cannot be cut inside of a block: NCHW can.
  static void slice_plainly(Compiler& compiler, const memory::dims& offsets,
                            const GradientPart& part) {
    Steps& steps = compiler.program().data_gradients;
    const Value& to = compiler.input(part.input);
    const Memory plain = compiler.output_gradient(
        compiler.plain_layout(compiler.output().shape, compiler.storage()), steps);
    const Description slice =
        plain.get_desc().submemory_desc(compiler.dims(to.shape), offsets, false);
    Memory view(slice, compiler.engine(), DNNL_MEMORY_NONE);
    steps.emplace_back(
        [view, plain](Call&) mutable { view.set_data_handle(plain.get_data_handle()); });
    steps.push_back(compiler.workshop().reorder(view, part.memory));
  }
};

// The bytes of NCHW are those of a vector.
class FlattenPlanner : public LayerPlanner {
 public:
  void plan_forward(Compiler& compiler) override {
    const Description plain = compiler.plain_layout(compiler.input(0).shape, compiler.storage());
    const Description layout = compiler.plain_layout(compiler.output().shape, compiler.storage());
    if (compiler.input_layout(0) == plain) {
      compiler.make_view(layout);
      return;
    }
    compiler.make_output(layout);
    const Memory target = compiler.workshop().in_block(compiler.output().data, plain);
    const Memory source = compiler.forward_input(0, compiler.input_layout(0));
    compiler.add_forward(compiler.workshop().reorder(source, target));
  }

  void plan_backward(Compiler& compiler) override {
    const Value& from = compiler.input(0);
    const Description plain = compiler.plain_layout(from.shape, compiler.storage());
    if (from.layout == plain) {
      compiler.pass_gradient_through_view();
      return;
    }
    const GradientPart part = compiler.gradient_part(0, from.layout);
    Workshop& workshop = compiler.workshop();
    compiler.program().data_gradients.push_back(
        workshop.reorder(workshop.in_block(compiler.output().gradient, plain), part.memory));
    compiler.deliver(part);
  }
};

}  // namespace

Planner make_planner(const models::Concat&) {
  return std::make_unique<ConcatPlanner>();
}
Planner make_planner(const models::Flatten&) {
  return std::make_unique<FlattenPlanner>();
}

}  // namespace paceline::runtime::onednn

// The loss, in FP32 whatever is stored. Tests: tests/runtime/network_test.cc.
#include "runtime/network/loss.h"
#include "models/base/to_size.h"

#include "runtime/network/onednn/compiler.h"
#include "runtime/network/onednn/layers.h"

namespace paceline::runtime::onednn {
namespace {

using dnnl::memory;

class LossPlanner : public LayerPlanner {
 public:
  void plan_forward(Compiler& compiler) override {
    const models::Shape& shape = compiler.input(0).shape;
    const Description plain = compiler.plain_layout(shape, memory::data_type::f32);
    classes_ = to_size(shape.channels);
    compiler.logits() = compiler.workshop().persistent(plain);
    const Memory logits = compiler.logits();
    const Memory source = compiler.forward_input(0, compiler.input_layout(0));
    compiler.add_forward(compiler.workshop().reorder(source, logits));
    compiler.add_forward(Step([logits, classes = classes_](Call& call) {
      call.outcome = softmax_cross_entropy(floats(logits), classes, call.labels);
    }));
  }

  void plan_backward(Compiler& compiler) override {
    if (!compiler.input(0).needs_gradient) return;
    const Description plain =
        compiler.plain_layout(compiler.input(0).shape, memory::data_type::f32);
    const GradientPart part = compiler.gradient_part(0, plain);
    const Memory logits = compiler.logits();
    const Memory target = part.memory;
    compiler.program().data_gradients.emplace_back(
        [logits, target, classes = classes_](Call& call) {
          softmax_cross_entropy_gradient(floats(logits), classes, call.labels, call.loss_scale,
                                         floats(target));
        });
    compiler.deliver(part);
  }

 private:
  std::size_t classes_ = 0;
};

}  // namespace

Planner make_planner(const models::SoftmaxCrossEntropy&) {
  return std::make_unique<LossPlanner>();
}

}  // namespace paceline::runtime::onednn

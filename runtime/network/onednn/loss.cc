// The loss, in FP32 whatever is stored. Tests: tests/runtime/network_test.cc.
#include "runtime/network/loss.h"

#include <memory>

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
    loss_ = std::make_shared<SoftmaxLoss>(to_size(shape.channels), compiler.loss_share());
    compiler.logits() = compiler.workshop().persistent(plain);
    const Memory logits = compiler.logits();
    const Memory source = compiler.forward_input(0, compiler.input_layout(0));
    compiler.add_forward(compiler.workshop().reorder(source, logits));
    compiler.add_forward(Step([logits, loss = loss_](Call& call) {
      call.outcome = loss->outcome(floats(logits), call.labels);
    }));
  }

  void plan_backward(Compiler& compiler) override {
    if (!compiler.input(0).needs_gradient) return;
    const Description plain =
        compiler.plain_layout(compiler.input(0).shape, memory::data_type::f32);
    const GradientPart part = compiler.gradient_part(0, plain);
    const Memory logits = compiler.logits();
    const Memory target = part.memory;
    compiler.program().data_gradients.emplace_back([logits, target, loss = loss_](Call& call) {
      loss->gradient(floats(logits), call.labels, call.loss_scale, floats(target));
    });
    compiler.deliver(part);
  }

 private:
  std::shared_ptr<SoftmaxLoss> loss_;
};

}  // namespace

Planner make_planner(const models::SoftmaxCrossEntropy&) {
  return std::make_unique<LossPlanner>();
}

}  // namespace paceline::runtime::onednn

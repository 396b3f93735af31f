// Tests: tests/runtime/network_test.cc.
#include "runtime/network/onednn/step.h"

namespace paceline::runtime::onednn {

Step::Step(const dnnl::primitive& primitive, const Arguments& arguments) : primitive_(primitive) {
  for (const auto& [index, memory] : arguments) {
    memories_.push_back(memory);
    arguments_.push_back({index, memory.get()});
  }
}

void Step::run(Call& call) const {
  if (function_) {
    function_(call);
    return;
  }
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive_.get(), call.stream.get(),
                             static_cast<int>(arguments_.size()), arguments_.data()),
      "could not execute a primitive");
}

}  // namespace paceline::runtime::onednn

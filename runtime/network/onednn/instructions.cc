#include "runtime/network/onednn/instructions.h"

#include <oneapi/dnnl/dnnl.hpp>

namespace paceline::runtime::onednn {

bool may_use_bf16_instructions() {
  // Each set of instructions is a bit, and has the bits of those that it builds on.
  const auto all = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  constexpr auto bf16 = static_cast<unsigned>(dnnl_cpu_isa_avx512_core_bf16);
  return (all & bf16) == bf16;
}

}  // namespace paceline::runtime::onednn

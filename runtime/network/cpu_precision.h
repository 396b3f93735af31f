// What mixed precision costs on a CPU, by what the CPU can compute: on many it is slower than FP32, and
// there to train as a GPU would.
#pragma once

#include <string>

#include "models/base/precision.h"

namespace paceline::runtime {

// Whether oneDNN may use instructions that compute in BF16: AVX512_BF16 or AMX. It knows what the
// processor has; ONEDNN_MAX_CPU_ISA can only take away from that.
[[nodiscard]] bool has_bf16_instructions();

// Why a network of this storage, whose layers compute in `arithmetic`, trains slower than in FP32, in
// one line; empty where it does not.
[[nodiscard]] std::string slower_than_fp32(models::NumberType storage,
                                           models::NumberType arithmetic,
                                           bool has_bf16_instructions);

}  // namespace paceline::runtime

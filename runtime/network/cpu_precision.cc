// Tests: tests/runtime/cpu_precision_test.cc, tests/cli/train_test.py.
#include "runtime/network/cpu_precision.h"

#include "runtime/network/onednn/instructions.h"

namespace paceline::runtime {

bool has_bf16_instructions() {
  return onednn::may_use_bf16_instructions();
}

std::string slower_than_fp32(models::NumberType storage, models::NumberType arithmetic,
                             bool has_bf16_instructions) {
  const std::string slower =
      "mixed precision is slower than --precision fp32 on this processor: it computes ";
  if (storage == models::NumberType::fp32) return {};
  if (arithmetic == models::NumberType::fp32)
    return slower + "in FP32, and rounds each operand and result to " +
           (storage == models::NumberType::fp16 ? "FP16" : "BF16");
  if (!has_bf16_instructions)
    return slower + "BF16 by AVX-512 and conversions, without AVX512_BF16 or AMX";
  return {};
}

}  // namespace paceline::runtime

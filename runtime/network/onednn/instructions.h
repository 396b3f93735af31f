// Which instructions oneDNN may use. Private to runtime/network.
#pragma once

namespace paceline::runtime::onednn {

// Whether it may compute in BF16 by AVX512_BF16 or AMX.
[[nodiscard]] bool may_use_bf16_instructions();

}  // namespace paceline::runtime::onednn

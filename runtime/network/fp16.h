// FP32 arrays whose numbers are FP16's.
#pragma once

#include <span>

namespace paceline::runtime {

// Rounds each to the nearest FP16, ties to even; what is too large becomes infinity. By the threads
// of OpenMP.
void round_to_fp16(std::span<float> values);

}  // namespace paceline::runtime

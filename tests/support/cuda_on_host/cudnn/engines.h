// Which engines the double has for a graph.
//
// They stand in the order of the heuristics, and what they note is what they do:
//   2  TENSOR_CORE, REDUCED_PRECISION_REDUCTION: sums are rounded to the storage type now and then
//   3  TENSOR_CORE, NONDETERMINISTIC: the last bits of sums differ from run to run
//   0  TENSOR_CORE: FP32 operands are rounded to TF32
//   1  sums of products in FP32
// Convolutions have all of them, alone or with an epilogue; other graphs have engine 1. All but plain
// convolutions and those with bias and ReLU are compiled at run time.
#pragma once

#include <string>
#include <vector>

#include "tests/support/cuda_on_host/cudnn/descriptor.h"

namespace cuda_on_host::cudnn {

inline constexpr std::int64_t tf32_engine = 0;
inline constexpr std::int64_t exact_engine = 1;
inline constexpr std::int64_t narrow_engine = 2;
inline constexpr std::int64_t unsteady_engine = 3;

// Why the double executes no such graph; empty where it does.
[[nodiscard]] std::string objection(const Graph& graph);
// In the order of the heuristics; none where there is an objection.
[[nodiscard]] std::vector<Engine> engines_of(const Graph& graph);
[[nodiscard]] bool is_convolution(const Node& node);

}  // namespace cuda_on_host::cudnn

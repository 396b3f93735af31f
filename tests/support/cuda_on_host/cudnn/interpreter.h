// The reference for what cuDNN computes of a graph.
//
// Arithmetic is FP32. Products of convolutions are summed in FP32 in blocks of 256, sums over a batch
// (filter gradients, statistics and their gradients) in FP64. Results are rounded where they are
// stored, and where a virtual tensor has a type of 16 bits. What an engine notes, it does
// (engines.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "tests/support/cuda_on_host/cudnn/graph.h"
#include "tests/support/cuda_on_host/cudnn/values.h"

namespace cuda_on_host::cudnn {

// Where a graph's tensors stand, by unique id, and the numbers that the host gave by value.
struct Memory {
  std::map<std::int64_t, std::byte*> tensors;
  std::map<std::int64_t, float> numbers;
};

void interpret(const Graph& graph, std::int64_t engine, const Memory& memory);

// The parts. Each adds to `values` what the node writes.
void compute_convolution(const Node& node, std::int64_t engine, AllValues& values);
void compute_pointwise(const Node& node, AllValues& values);
void compute_norm(const Node& node, const std::map<std::int64_t, float>& numbers,
                  AllValues& values);
void compute_norm_backward(const Node& node, AllValues& values);
void compute_pool(const Node& node, AllValues& values);
void compute_pool_backward(const Node& node, AllValues& values);

}  // namespace cuda_on_host::cudnn

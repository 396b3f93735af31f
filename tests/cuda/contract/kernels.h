// Kernels of the contract tests. .cc files start them, and do not see nvcc's side of them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace cuda_contract {

// y[i] = value
[[nodiscard]] cudaError_t start_fill(cudaStream_t stream, float* y, float value, std::size_t n);
// y[i] = a x[i] + b y[i] + c
[[nodiscard]] cudaError_t start_combine(cudaStream_t stream, float* y, const float* x, float a,
                                        float b, float c, std::size_t n);
// *sum = the sum of x, by two phases and one block
[[nodiscard]] cudaError_t start_phased_sum(cudaStream_t stream, float* sum, const float* x,
                                           std::size_t n);
// The same by barriers and shuffles
[[nodiscard]] cudaError_t start_cooperative_sum(cudaStream_t stream, float* sum, const float* x,
                                                std::size_t n);
// y[i] = i, with shared memory of so many bytes
[[nodiscard]] cudaError_t start_with_shared_memory(cudaStream_t stream, float* y, unsigned threads,
                                                   std::size_t shared_bytes);

}  // namespace cuda_contract

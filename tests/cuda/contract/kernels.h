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
// y[i] = i, with shared memory of this many bytes
[[nodiscard]] cudaError_t start_with_shared_memory(cudaStream_t stream, float* y, unsigned threads,
                                                   std::size_t shared_bytes);

// Kernels that are wrong, for the double alone.

// Says that it writes declared[0], and writes actual[0].
[[nodiscard]] cudaError_t start_undeclared(cudaStream_t stream, float* declared, float* actual);
// Says that it reads y[0], and writes it.
[[nodiscard]] cudaError_t start_write_to_input(cudaStream_t stream, float* y);
// 16 of 64 threads come to a barrier.
[[nodiscard]] cudaError_t start_divergent_barrier(cudaStream_t stream);
// One lane of a warp comes to a shuffle.
[[nodiscard]] cudaError_t start_divergent_shuffle(cudaStream_t stream);
// Thread t of 64 reads what its neighbour (t + distance) mod 64 wrote to shared memory, and writes it to
// y[t]; the barrier between is forgotten.
[[nodiscard]] cudaError_t start_forgotten_barrier(cudaStream_t stream, float* y, unsigned distance);
// The same by two phases: the neighbour's value is there.
[[nodiscard]] cudaError_t start_neighbour(cudaStream_t stream, float* y, unsigned distance);
// Writes one element more of shared memory than it has.
[[nodiscard]] cudaError_t start_shared_overrun(cudaStream_t stream);
// y[0] = the number of the element, of n, that ran last: depends on the order.
[[nodiscard]] cudaError_t start_last(cudaStream_t stream, float* y, std::size_t n);
// y[0] = the block, of n, that ran last.
[[nodiscard]] cudaError_t start_last_block(cudaStream_t stream, float* y, unsigned n);
// Has no body on the host. Returns the launch's error.
[[nodiscard]] cudaError_t start_without_body(cudaStream_t stream);
// The attributes of the kernel of start_with_shared_memory().
[[nodiscard]] cudaError_t allow_shared_memory(std::size_t bytes);

}  // namespace cuda_contract

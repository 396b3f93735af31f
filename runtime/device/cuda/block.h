// What the body of a CUDA kernel sees of the block of threads that runs it, on a GPU and on the host.
//
// A body is a trivially copyable functor whose functions are PACELINE_HD: nvcc compiles them for the
// GPU and for the host, where the tests' double of the CUDA runtime runs them
// (tests/support/cuda_on_host). launch.h has the shapes in which bodies are started. This header,
// launch.h and bodies/numbers.h are the only ones that know __CUDA_ARCH__.
#pragma once

#include <cstddef>
#include <cstring>

#include "runtime/device/cuda/host_kernel.h"

#ifdef __CUDACC__
#define PACELINE_HD __host__ __device__
#else
#define PACELINE_HD
#endif

namespace paceline::runtime::cuda {

// One thread's view of its block. Grids and blocks have one dimension.
struct Block {
  unsigned thread = 0;   // in the block
  unsigned threads = 1;  // of the block
  unsigned block = 0;    // in the grid
  unsigned blocks = 1;   // of the grid
  std::byte* shared_bytes = nullptr;
  const BlockOnHost* host = nullptr;  // null on a GPU

  // The block's shared memory, aligned to 16 bytes and not initialised.
  template <class T>
  PACELINE_HD T* shared() const {
    return reinterpret_cast<T*>(shared_bytes);
  }

  // Barrier of the block. Every thread of the block comes to it.
  PACELINE_HD void sync() const {
#ifdef __CUDA_ARCH__
    __syncthreads();
#else
    host->sync(host->self);
#endif
  }

  // The value of the lane `delta` above this one in the warp; the lane's own value where there is
  // none. Every lane of the warp comes to it, and warps are full.
  template <class T>
  PACELINE_HD T shuffle_down(T value, unsigned delta) const {
#ifdef __CUDA_ARCH__
    return __shfl_down_sync(0xffffffffU, value, delta);
#else
    static_assert(sizeof(T) <= BlockOnHost::slot_bytes);
    std::memcpy(host->slots + BlockOnHost::slot_bytes * thread, &value, sizeof value);
    host->sync_warp(host->self);
    const unsigned from = thread % 32 + delta < 32 ? thread + delta : thread;
    T result;
    std::memcpy(&result, host->slots + BlockOnHost::slot_bytes * from, sizeof result);
    host->sync_warp(host->self);  // no lane writes its slot again before all have read
    return result;
#endif
  }
};

}  // namespace paceline::runtime::cuda

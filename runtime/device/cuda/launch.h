// The three shapes in which bodies of kernels are started, and the only code of Paceline that starts
// a kernel. Nothing else has a __global__ function or <<<>>>.
//
// | shape       | a body has                               | for                                   |
// |-------------|------------------------------------------|---------------------------------------|
// | elements    | operator()(std::uint64_t i)              | casts, sums, updates                  |
// | phased      | phase(int p, const Block&), `phases`     | sums over a block: state between      |
// |             |                                          | phases is in shared memory            |
// | cooperative | operator()(const Block&)                 | what needs warp shuffles or barriers  |
// |             |                                          | within loops                          |
//
// Every body has access(visitor), which calls visitor.read(pointer, elements) and
// visitor.write(pointer, elements) for every range that the kernel touches, on the host: by it the
// tests' double finds kernels that do not wait for each other. Elements, threads of a phase and
// blocks run in any order, so that the result of a body may not depend on it.
//
// Only units compiled by nvcc include this header. The functions return CUDA's status of the call.
#pragma once

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "runtime/device/cuda/block.h"
#include "runtime/device/cuda/host_kernel.h"

namespace paceline::runtime::cuda {

// The grid and the shared memory of a phased or cooperative kernel.
struct Grid {
  unsigned blocks = 1;
  unsigned threads = 256;  // of a block: a multiple of 32, 1024 at most
  std::size_t shared_bytes = 0;
};

namespace detail {

template <class Body>
__global__ void run_elements(Body body, std::uint64_t count) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += stride)
    body(i);
}

#ifdef __CUDA_ARCH__
__device__ inline std::byte* shared_bytes() {
  extern __shared__ __align__(16) unsigned char bytes[];
  return reinterpret_cast<std::byte*>(bytes);
}
__device__ inline Block this_block() {
  return {threadIdx.x, blockDim.x, blockIdx.x, gridDim.x, shared_bytes(), nullptr};
}
#else
Block this_block();  // for the host's half of the kernels below, which never runs
#endif

template <class Body>
__global__ void run_phases(Body body) {
  const Block block = this_block();
  for (int p = 0; p < Body::phases; ++p) {
    if (p > 0) __syncthreads();
    body.phase(p, block);
  }
}

template <class Body>
__global__ void run_cooperative(Body body) {
  body(this_block());
}

// The arguments of a launch, copied.
template <class Body>
struct Bound {
  Body body;
  std::uint64_t count = 0;
};

// What access() of a body is given.
struct AccessVisitor {
  VisitAccess visit;
  void* self;
  template <class T>
  void read(const T* first, std::size_t elements) const {
    if (elements > 0) visit(self, first, elements * sizeof(T), false);
  }
  template <class T>
  void write(T* first, std::size_t elements) const {
    if (elements > 0) visit(self, first, elements * sizeof(T), true);
  }
};

template <class Body>
Bound<Body>& bound(void* p) {
  return *static_cast<Bound<Body>*>(p);
}

template <class Body>
HostKernel kernel_of() {
  static_assert(std::is_trivially_copyable_v<Body>, "a launch copies the body's bytes");
  HostKernel kernel;
  kernel.release = [](void* p) { delete &bound<Body>(p); };
  kernel.access = [](void* p, VisitAccess visit, void* self) {
    bound<Body>(p).body.access(AccessVisitor{visit, self});
  };
  return kernel;
}

template <class Body>
void* bind_body(void** arguments) {
  return new Bound<Body>{*static_cast<Body*>(arguments[0])};
}

// Tells the double of a kernel; returns at once where there is none. `Shape` is one for each kernel.
template <class Shape>
void tell_double(const void* stub, const HostKernel& kernel) {
  static const bool told = [&] {
    const auto tell =
        reinterpret_cast<RegisterHostKernel>(dlsym(RTLD_DEFAULT, register_host_kernel_name));
    if (tell != nullptr) tell(stub, &kernel);
    return true;
  }();
  static_cast<void>(told);
}

inline cudaError_t launch(const void* stub, const Grid& grid, cudaStream_t stream,
                          void** arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid.blocks);
  config.blockDim = dim3(grid.threads);
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelExC(&config, stub, arguments);
}

// Names of the shapes, for tell_double().
template <class Body>
struct Elements;
template <class Body>
struct Phased;
template <class Body>
struct Cooperative;

}  // namespace detail

// Starts body(i) for i from 0 to count - 1, on as many threads as fill a GPU at most. A body that
// has work for more than one number at a time (16 bytes) takes i as the number of that piece.
// Starts nothing for a count of 0.
template <class Body>
[[nodiscard]] cudaError_t start_elements(cudaStream_t stream, Body body, std::uint64_t count) {
  if (count == 0) return cudaSuccess;
  HostKernel kernel = detail::kernel_of<Body>();
  kernel.bind = [](void** a) -> void* {
    return new detail::Bound<Body>{*static_cast<Body*>(a[0]), *static_cast<std::uint64_t*>(a[1])};
  };
  kernel.element = [](void* p, std::uint64_t i) { detail::bound<Body>(p).body(i); };
  kernel.elements = [](void* p) { return detail::bound<Body>(p).count; };
  const auto* stub = reinterpret_cast<const void*>(&detail::run_elements<Body>);
  detail::tell_double<detail::Elements<Body>>(stub, kernel);
  constexpr unsigned threads = 256;
  constexpr std::uint64_t most_blocks = 132 * 8;  // eight blocks of 256 fill a multiprocessor
  const std::uint64_t blocks = (count + threads - 1) / threads;
  void* arguments[] = {&body, &count};
  return detail::launch(
      stub, {static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks), threads, 0},
      stream, arguments);
}

// Starts body.phase(p, block) for p from 0 to Body::phases - 1 on each thread of the grid, with a
// barrier of the block between phases.
template <class Body>
[[nodiscard]] cudaError_t start_phased(cudaStream_t stream, Body body, const Grid& grid) {
  HostKernel kernel = detail::kernel_of<Body>();
  kernel.bind = detail::bind_body<Body>;
  kernel.phases = Body::phases;
  kernel.phase = [](void* p, int phase, unsigned thread, unsigned threads, unsigned block,
                    unsigned blocks, std::byte* shared) {
    detail::bound<Body>(p).body.phase(phase, {thread, threads, block, blocks, shared, nullptr});
  };
  const auto* stub = reinterpret_cast<const void*>(&detail::run_phases<Body>);
  detail::tell_double<detail::Phased<Body>>(stub, kernel);
  void* arguments[] = {&body};
  return detail::launch(stub, grid, stream, arguments);
}

// Starts body(block) on each thread of the grid.
template <class Body>
[[nodiscard]] cudaError_t start_cooperative(cudaStream_t stream, Body body, const Grid& grid) {
  HostKernel kernel = detail::kernel_of<Body>();
  kernel.bind = detail::bind_body<Body>;
  kernel.thread = [](void* p, unsigned thread, unsigned threads, unsigned block, unsigned blocks,
                     std::byte* shared, const BlockOnHost* host) {
    detail::bound<Body>(p).body({thread, threads, block, blocks, shared, host});
  };
  const auto* stub = reinterpret_cast<const void*>(&detail::run_cooperative<Body>);
  detail::tell_double<detail::Cooperative<Body>>(stub, kernel);
  void* arguments[] = {&body};
  return detail::launch(stub, grid, stream, arguments);
}

}  // namespace paceline::runtime::cuda

// Kernels that the double can run: bodies on the host (runtime/device/cuda/host_kernel.h), known by the
// device names that nvcc's code registers.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/device/cuda/host_kernel.h"

namespace cuda_on_host {

// What ends a kernel on a device, and leaves the device with a sticky error.
struct KernelFault {
  cudaError_t error;
  std::string what;
};

constexpr std::size_t shared_bytes_by_default = std::size_t{48} << 10;
constexpr std::size_t most_shared_bytes = std::size_t{227} << 10;  // sm_90, by opt-in
constexpr unsigned most_threads = 1024;

struct Kernel {
  std::string name;  // of the device's function
  paceline::runtime::cuda::HostKernel body;
  bool has_body = false;
  std::size_t shared_bytes = shared_bytes_by_default;  // of a launch at most
};

// nvcc's code tells the name of a stub; launch.h the body.
void name_stub(const void* stub, const char* device_name);
void set_body(const void* stub, const paceline::runtime::cuda::HostKernel& body);
// Null for what is no stub.
[[nodiscard]] Kernel* kernel_of(const void* stub);
// The kernel's name as C++ has it, without its arguments.
[[nodiscard]] std::string readable_name(const std::string& device_name);

// The grid of a launch.
struct Launch {
  unsigned blocks = 1;
  unsigned threads = 1;
  std::size_t shared_bytes = 0;
};

// Runs a kernel's body in an order that the seed draws: of elements, or of blocks and the threads of
// each. Throws KernelFault.
void run_kernel(const Kernel& kernel, void* bound, const Launch& launch);

// Runs a block of a cooperative kernel, whose threads are fibers. Throws KernelFault.
void run_cooperative_block(const Kernel& kernel, void* bound, const Launch& launch, unsigned block,
                           std::byte* shared);

}  // namespace cuda_on_host

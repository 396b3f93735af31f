// How launch.h hands the bodies of kernels to the tests' double of the CUDA runtime
// (tests/support/cuda_on_host), which runs them on the host. The two sides are built apart, so
// everything here is a plain type or a function pointer.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paceline::runtime::cuda {

// What the double gives to the threads of a cooperative body.
struct BlockOnHost {
  static constexpr std::size_t slot_bytes = 16;

  void* self = nullptr;
  void (*sync)(void* self) = nullptr;       // barrier of the block
  void (*sync_warp)(void* self) = nullptr;  // barrier of the 32 lanes of this thread's warp
  std::byte* slots = nullptr;               // slot_bytes for each thread, for shuffles
};

// Is called for each range of memory that a kernel reads or writes.
using VisitAccess = void (*)(void* self, const void* first, std::size_t bytes, bool writes);

// A kernel's body as the double runs it. Exactly one of `element`, `phase` and `thread` is set: it
// is the kernel's shape (launch.h).
struct HostKernel {
  // Copies the arguments of a launch by value. cudaLaunchKernelExC does not tell their sizes.
  void* (*bind)(void** arguments) = nullptr;
  void (*release)(void* bound) = nullptr;

  void (*element)(void* bound, std::uint64_t index) = nullptr;
  std::uint64_t (*elements)(void* bound) = nullptr;  // with `element`: how many there are

  // Phase p of one thread. All threads of a block end phase p before one begins phase p + 1.
  void (*phase)(void* bound, int phase, unsigned thread, unsigned threads, unsigned block,
                unsigned blocks, std::byte* shared) = nullptr;
  int phases = 0;  // with `phase`: how many there are

  void (*thread)(void* bound, unsigned thread, unsigned threads, unsigned block, unsigned blocks,
                 std::byte* shared, const BlockOnHost* host) = nullptr;

  // Names every range that the kernel touches; it may name more than that.
  void (*access)(void* bound, VisitAccess visit, void* self) = nullptr;
};

// The function of the double that launch.h looks up by name (dlsym), and calls once for each kernel
// with the kernel's stub on the host. No CUDA runtime but the double has it. The double knows the
// kernel again by the device name that nvcc's code registered for the stub.
inline constexpr const char* register_host_kernel_name = "paceline_register_host_kernel";
using RegisterHostKernel = void (*)(const void* stub, const HostKernel* kernel);

}  // namespace paceline::runtime::cuda

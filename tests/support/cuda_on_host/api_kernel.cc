// Launches, and what nvcc's code for the host calls.
#include <algorithm>
#include <cstdio>

#include "tests/support/cuda_on_host/capture.h"
#include "tests/support/cuda_on_host/device.h"
#include "tests/support/cuda_on_host/kernels.h"
#include "tests/support/cuda_on_host/memory.h"
#include "tests/support/cuda_on_host/state.h"

namespace cuda_on_host {

int current_device() {
  return this_thread().device;
}

cudaError_t launch_error(const Stream& stream) {
  const auto broken = state().sticky.find(stream.device);
  if (broken != state().sticky.end()) return broken->second;
  if (stream.device != current_device()) return cudaErrorInvalidResourceHandle;
  return forbidden_in_legacy(stream);
}

cudaError_t unsafe_call_error() {
  return forbidden_by_captures();
}

void check_accesses(const Operation& operation, int device) {
  for (const Access& access : operation.accesses) {
    check_range(access.first, access.bytes,
                operation.what + (access.writes ? " writes" : " reads"));
    const Allocation* const a = find_allocation(access.first);
    if (a == nullptr) die(operation.what + " touches pageable memory of the host");
    if (a->kind == MemoryKind::device && !can_access_peer(device, a->device))
      die(operation.what + " of device " + std::to_string(device) + " touches " +
          place_of(access.first) + ", without peer access");
  }
}

}  // namespace cuda_on_host

using namespace cuda_on_host;  // NOLINT: the functions below are CUDA's, in no namespace

namespace {

// What <<<>>> was given, until the launch takes it.
struct Configuration {
  dim3 grid, block;
  size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};
thread_local Configuration configuration;

cudaError_t launch_kernel(const void* stub, dim3 grid, dim3 block, void** arguments,
                          size_t shared_bytes, cudaStream_t handle) {
  const Kernel* const kernel = kernel_of(stub);
  if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
  if (!kernel->has_body) {
    std::fprintf(stderr, "cuda_on_host: kernel %s has no host body\n",
                 readable_name(kernel->name).c_str());
    return cudaErrorInvalidDeviceFunction;
  }
  const auto threads = std::uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > most_threads || block.z > 64 || grid.x == 0 || grid.y == 0 ||
      grid.z == 0 || grid.x > 2147483647 || grid.y > 65535 || grid.z > 65535)
    return cudaErrorInvalidValue;  // cudaLaunchKernelExC on an H100, CUDA 13.0
  if (shared_bytes > kernel->shared_bytes) return cudaErrorInvalidValue;
  if (block.y != 1 || block.z != 1 || grid.y != 1 || grid.z != 1)
    die("the double runs grids and blocks of one dimension only");
  if (kernel->body.element == nullptr && threads % 32 != 0)
    die("a phased or cooperative kernel has blocks of whole warps (launch.h)");
  Stream* const stream = stream_of(handle);
  if (const cudaError_t status = launch_error(*stream); status != cudaSuccess) return status;
  const std::shared_ptr<void> bound(kernel->body.bind(arguments), kernel->body.release);
  const Launch launch{grid.x, static_cast<unsigned>(threads), shared_bytes};
  const int device = stream->device;
  enqueue(stream, [=] {
    auto made = std::make_shared<Operation>();
    made->what = readable_name(kernel->name);
    made->is_work = true;
    made->run = [=] { run_kernel(*kernel, bound.get(), launch); };
    kernel->body.access(
        bound.get(),
        [](void* self, const void* first, std::size_t bytes, bool writes) {
          static_cast<Operation*>(self)->accesses.push_back(
              {static_cast<const std::byte*>(first), bytes, writes});
        },
        made.get());
    check_accesses(*made, device);
    return made;
  });
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* stub,
                                void** arguments) {
  return call("cudaLaunchKernelExC", [&] {
    if (config->numAttrs != 0) return cudaErrorNotSupported;
    return launch_kernel(stub, config->gridDim, config->blockDim, arguments,
                         config->dynamicSmemBytes, config->stream);
  });
}

cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments,
                             size_t shared_bytes, cudaStream_t stream) {
  return call("cudaLaunchKernel",
              [&] { return launch_kernel(stub, grid, block, arguments, shared_bytes, stream); });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* stub) {
  return call("cudaFuncGetAttributes", [&] {
    const Kernel* const kernel = kernel_of(stub);
    if (kernel == nullptr || !kernel->has_body) return cudaErrorInvalidDeviceFunction;
    *attributes = {};
    attributes->maxThreadsPerBlock = most_threads;
    attributes->maxDynamicSharedSizeBytes = static_cast<int>(kernel->shared_bytes);
    attributes->binaryVersion = 90;
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(const void* stub, cudaFuncAttribute attribute, int value) {
  return call("cudaFuncSetAttribute", [&] {
    Kernel* const kernel = kernel_of(stub);
    if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || static_cast<std::size_t>(value) > most_shared_bytes)
      return cudaErrorInvalidValue;
    kernel->shared_bytes = static_cast<std::size_t>(value);
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* stub,
                                                                   int threads, size_t shared_bytes,
                                                                   unsigned flags) {
  return call("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", [&] {
    static_cast<void>(flags);
    if (kernel_of(stub) == nullptr) return cudaErrorInvalidDeviceFunction;
    if (threads <= 0 || threads > static_cast<int>(most_threads)) return cudaErrorInvalidValue;
    *blocks = std::min(32, 2048 / threads);
    if (shared_bytes > 0)
      *blocks =
          std::min(*blocks, static_cast<int>((std::size_t{228} << 10U) / (shared_bytes + 1024)));
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* stub,
                                                          int threads, size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, stub, threads, shared_bytes,
                                                                0);
}

// Below is what nvcc's generated code calls; no header declares all of it.
void** __cudaRegisterFatBinary(void* binary);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
char __cudaInitModule(void** handle);
void __cudaRegisterVar(void** handle, char* host, char* device_address, const char* device_name,
                       int external, size_t bytes, int constant, int global);
void __cudaRegisterFunction(void** handle, const char* stub, char* device_function,
                            const char* device_name, int thread_limit, uint3* thread, uint3* block,
                            dim3* block_size, dim3* grid_size, int* warp_size);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream);
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared_bytes, cudaStream_t stream);

void** __cudaRegisterFatBinary(void* binary) {
  static_cast<void>(binary);
  static void* handle;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void** handle) {
  static_cast<void>(handle);
}
void __cudaUnregisterFatBinary(void** handle) {
  static_cast<void>(handle);
}
char __cudaInitModule(void** handle) {
  static_cast<void>(handle);
  return 0;
}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}

void __cudaRegisterFunction(void**, const char* stub, char*, const char* device_name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  name_stub(stub, device_name);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     cudaStream_t stream) {
  configuration = {grid, block, shared_bytes, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                       void* stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared_bytes = configuration.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = configuration.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(stub));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared_bytes, cudaStream_t stream) {
  return call("__cudaLaunchKernel",
              [&] { return launch_kernel(kernel, grid, block, arguments, shared_bytes, stream); });
}

// The function that launch.h looks for (host_kernel.h).
void paceline_register_host_kernel(const void* stub,
                                   const paceline::runtime::cuda::HostKernel* kernel);
void paceline_register_host_kernel(const void* stub,
                                   const paceline::runtime::cuda::HostKernel* kernel) {
  const ApiCall api("paceline_register_host_kernel");
  set_body(stub, *kernel);
}

}  // extern "C"

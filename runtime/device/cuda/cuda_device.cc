// Tests: tests/cuda/device/cuda_device_test.cc.
#include "runtime/device/cuda/cuda_device.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "models/base/error.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/device/cuda/device_tables.h"
#include "runtime/device/cuda/handle.h"
#include "runtime/device/cuda/status.h"

namespace paceline::runtime {

using cuda::check;

int CudaDevice::count() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  // Without a driver, or with one that is older than the toolkit's runtime, there is no device to
  // use.
  if (status == cudaErrorNoDevice || status == cudaErrorInsufficientDriver) {
    static_cast<void>(cudaGetLastError());
    return 0;
  }
  check(status, "count CUDA devices");
  return count;
}

CudaDevice::CudaDevice(int index) : index_(index) {
  const int devices = count();
  if (devices == 0) throw RunError("use a CUDA device", "no CUDA device was found");
  if (index < 0 || index >= devices)
    throw RunError(fmt::format("use CUDA device {}", index),
                   fmt::format("there are {}, numbered from 0", devices));
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index),
        fmt::format("ask for the properties of CUDA device {}", index));
  description_ =
      fmt::format("{}, sm_{}{}", &properties.name[0], properties.major, properties.minor);
  identity_ = fmt::format("{:02x}:{:02x}:{:02x} ", properties.pciDomainID, properties.pciBusID,
                          properties.pciDeviceID);
  for (const char byte : properties.uuid.bytes)
    identity_ += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  tables_ = std::make_unique<cuda::DeviceTables>(*this, index);
}

CudaDevice::~CudaDevice() = default;

Memory CudaDevice::allocate(std::size_t bytes, MemoryKind kind) {
  if (kind == MemoryKind::host) return host_memory(bytes);
  if (bytes == 0) return {nullptr, 0, kind, [](std::byte*) {}};
  const cuda::CurrentDevice current(index_);
  void* memory = nullptr;
  if (kind == MemoryKind::pinned) {
    check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable),
          fmt::format("allocate {} bytes of pinned memory", bytes));
    return {static_cast<std::byte*>(memory), bytes, kind,
            [](std::byte* data) { static_cast<void>(cudaFreeHost(data)); }};
  }
  check(cudaMalloc(&memory, bytes),
        fmt::format("allocate {} bytes of memory of CUDA device {}", bytes, index_));
  return {static_cast<std::byte*>(memory), bytes, kind,
          [](std::byte* data) { static_cast<void>(cudaFree(data)); }};
}

std::unique_ptr<Stream> CudaDevice::make_stream() {
  return std::make_unique<cuda::CudaStream>(index_, *tables_);
}

}  // namespace paceline::runtime

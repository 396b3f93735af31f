// CudaDevice where Paceline is built without a CUDA toolkit.
#include "models/base/error.h"
#include "runtime/device/cuda/cuda_device.h"

namespace paceline::runtime {

namespace cuda {
class DeviceTables {};
}  // namespace cuda

int CudaDevice::count() {
  return 0;
}

CudaDevice::CudaDevice(int index) : index_(index) {
  throw UnavailableError(
      "built without CUDA: install a CUDA toolkit, and configure again with PACELINE_WITH_CUDA=ON");
}

CudaDevice::~CudaDevice() = default;

Memory CudaDevice::allocate(std::size_t bytes, MemoryKind /*kind*/) {
  return host_memory(bytes);
}

std::unique_ptr<Stream> CudaDevice::make_stream() {
  return nullptr;
}

}  // namespace paceline::runtime

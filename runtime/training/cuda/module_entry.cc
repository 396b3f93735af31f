// What paceline-cuda.so offers to runtime/training/cuda_module.cc.
#include <memory>

#include "runtime/channel/messages.h"
#include "runtime/collective/executor.h"
#include "runtime/collective/nccl/nccl_executor.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/network/cuda/cuda_network.h"
#include "runtime/training/backend.h"

namespace paceline::runtime {
namespace {

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(int index) : device_(index) {}

  [[nodiscard]] Device& device() override { return device_; }
  [[nodiscard]] std::string description() const override { return device_.description(); }
  [[nodiscard]] std::unique_ptr<TrainableNetwork> make_network(
      const models::Network& network, const TrainableNetworkOptions& options) override {
    return std::make_unique<CudaNetwork>(device_, network, options);
  }
  // By NCCL where every rank of the job has a GPU of its own, which NCCL asks for. Elsewhere messages
  // travel through pinned memory by the endpoint's transport, and sums are kernels of the GPU.
  [[nodiscard]] std::unique_ptr<CollectiveExecutor> make_executor(
      const Endpoint& endpoint, const DeviceShare& share) override {
    double sharing = share.own_device ? 0 : 1;  // ranks that share their GPU
    sum_over_ranks(endpoint.channel, {&sharing, 1});
    if (endpoint.channel.ranks() == 1 || sharing > 0)
      return std::make_unique<Executor>(endpoint.transport, device_);
    return std::make_unique<NcclExecutor>(
        endpoint.channel, device_,
        NcclOptions{.streams = share.streams, .patience = share.patience});
  }

 private:
  CudaDevice device_;
};

}  // namespace
}  // namespace paceline::runtime

extern "C" {

__attribute__((visibility("default"))) int paceline_cuda_devices() {
  return paceline::runtime::CudaDevice::count();
}

__attribute__((visibility("default"))) paceline::runtime::Backend* paceline_make_cuda_backend(
    int index) {
  return std::make_unique<paceline::runtime::CudaBackend>(index).release();
}

__attribute__((visibility("default"))) const char* paceline_cuda_version() {
  return PACELINE_CUDA_VERSION;
}
}

// What paceline-cuda.so offers to runtime/training/cuda_module.cc.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

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
    if (endpoint.channel.ranks() == 1 || is_shared(endpoint.channel))
      return std::make_unique<Executor>(endpoint.transport, device_);
    return std::make_unique<NcclExecutor>(
        endpoint.channel, device_,
        NcclOptions{.streams = share.streams, .patience = share.patience});
  }

 private:
  // Whether two ranks of the job have the same GPU. Which number it has in which process says
  // nothing, since launchers show each process other GPUs (CUDA_VISIBLE_DEVICES).
  [[nodiscard]] bool is_shared(Channel& channel) const {
    std::vector<std::string> all = gather_texts(channel, device_.identity());
    std::ranges::sort(all);
    double shared = std::ranges::adjacent_find(all) == all.end() ? 0 : 1;  // rank 0 knows
    sum_over_ranks(channel, {&shared, 1});
    return shared > 0;
  }

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

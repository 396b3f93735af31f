// What paceline-cuda.so offers to runtime/training/cuda_module.cc.
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/base/error.h"
#include "models/base/module.h"
#include "runtime/channel/messages.h"
#include "runtime/collective/executor.h"
#include "runtime/collective/nccl/nccl_executor.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/network/cuda/cuda_network.h"
#include "runtime/network/cuda/step_library.h"
#include "runtime/network/cudnn/cudnn_steps.h"
#include "runtime/network/steps/layer_steps.h"
#include "runtime/probe/cuda/cuda_probe.h"
#include "runtime/training/backend.h"
#include "runtime/training/cuda_module.h"

namespace paceline::runtime {
namespace {

std::unique_ptr<cuda::StepLibraries> open_cudnn(const cudnn::CudnnOptions& options) {
  static const std::vector<void*> symbols =
      load_module({.file = "paceline-cudnn.so",
                   .what = "cuDNN",
                   .remedy = "build where cuDNN is, or use --layers own"},
                  {"paceline_open_cudnn"});
  const auto open =
      reinterpret_cast<cuda::StepLibraries* (*)(const cudnn::CudnnOptions*)>(symbols[0]);
  return std::unique_ptr<cuda::StepLibraries>(open(&options));
}

class CudaBackend final : public Backend {
 public:
  CudaBackend(int index, const CudaLayers& layers)
      : device_(index), must_be_cudnn_(layers.by == LayersBy::cudnn) {
    if (layers.by == LayersBy::own) return;
    try {
      libraries_ = open_cudnn({.device = index, .plans = layers.plans, .threads = layers.threads});
    } catch (const std::runtime_error& error) {  // it is not there, or does not start
      if (layers.by == LayersBy::cudnn)
        throw UnavailableError(std::string(error.what()) + "; use --layers own, which is slow");
      use_own_kernels(error.what());
    }
  }

  [[nodiscard]] Device& device() override { return device_; }
  [[nodiscard]] std::string description() const override {
    return device_.description() + ", layers by " +
           (libraries_ == nullptr ? "own kernels" : libraries_->description());
  }
  [[nodiscard]] std::vector<std::string> notes() const override {
    if (libraries_ != nullptr) return libraries_->notes();
    return note_.empty() ? std::vector<std::string>{} : std::vector<std::string>{note_};
  }
  void prepare(const models::Network& network, const TrainableNetworkOptions& options) override {
    if (libraries_ == nullptr) return;
    const std::vector<steps::Operation> operations =
        steps::operations_of(steps::layer_steps(network, options.batch));
    try {
      libraries_->make()->plan(operations, options.storage);
    } catch (const RunError& error) {  // it has no plan for one of them
      if (must_be_cudnn_) throw;
      use_own_kernels(error.what());
    }
  }
  [[nodiscard]] std::unique_ptr<TrainableNetwork> make_network(
      const models::Network& network, const TrainableNetworkOptions& options) override {
    if (libraries_ == nullptr) return std::make_unique<CudaNetwork>(device_, network, options);
    return std::make_unique<CudaNetwork>(device_, network, options, libraries_->make());
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
  void use_own_kernels(const std::string& why) {
    libraries_ = nullptr;
    note_ = "layers are computed by kernels of our own, which are slow: " + why;
  }

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
  bool must_be_cudnn_;
  std::unique_ptr<cuda::StepLibraries> libraries_;
  std::string note_;
};

}  // namespace
}  // namespace paceline::runtime

extern "C" {

__attribute__((visibility("default"))) int paceline_cuda_devices() {
  return paceline::runtime::CudaDevice::count();
}

__attribute__((visibility("default"))) paceline::runtime::Backend* paceline_make_cuda_backend(
    int index, const paceline::runtime::CudaLayers* layers) {
  return std::make_unique<paceline::runtime::CudaBackend>(index, *layers).release();
}

__attribute__((visibility("default"))) paceline::runtime::DeviceProbe* paceline_make_cuda_probe(
    int index, int all_devices, const paceline::runtime::CudaLayers* layers) {
  return paceline::runtime::make_cuda_probe(
             std::make_unique<paceline::runtime::CudaBackend>(index, *layers), all_devices != 0)
      .release();
}

__attribute__((visibility("default"))) const char* paceline_cuda_version() {
  return PACELINE_CUDA_VERSION;
}
}

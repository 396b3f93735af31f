// A network that computes on a CUDA device.
//
// Activations and working copies of weights are NHWC in the storage type (FP32, FP16, BF16), and
// arithmetic is in FP32 or wider: numbers are rounded at the places at which CpuNetwork rounds where
// its arithmetic is FP32, so that both differ by the order and the width of their sums. What layers
// leave open is as cpu_network.h says. Dropout has the same masks.
//
// Layers are computed step by step (runtime/network/steps/layer_steps.h): by a library, cuDNN, where
// the network is given one (step_library.h), and else by kernels of our own (bodies/), which run on
// any device and on the tests' double of the CUDA runtime. Those of convolutions are direct, and slow:
// they are what libraries are held against. Where cuDNN computes, numbers differ also by what
// docs/training.md says ("On GPUs").
//
// Images travel on a stream of their own, into memory that a pass reads at its begin only: those of the
// next batch may be brought as soon as a pass is started. No pass waits for what it starts: outcome()
// waits for the loss, and each gradient has a token. While an observer is set, every
// layer is waited for, so that it is told when the device has done the layer.
//
// Passes are CUDA graphs from their second time on (runtime/network/cuda/replayed_work.h), unless an
// observer or a marker is set, or the options say otherwise: one for a forward pass, one for the working
// copies of weights, and those of a backward pass, which is cut where a gradient is announced
// (announce_at). Where something cannot be captured, passes are started kernel by kernel as before, and
// take_remark() says so.
//
// All memory is taken at construction. The same network, weights and batch give the same bits.
// Thread safety: one thread at a time.
#pragma once

#include <memory>

#include "runtime/device/cuda/cuda_device.h"
#include "runtime/network/trainable_network.h"

namespace paceline::runtime {

// Is told of places in the stream of a pass while its work is put there, and may put more behind it, such
// as an event. Unlike an observer of layers it makes nobody wait.
class PassMarker {
 public:
  virtual ~PassMarker() = default;
  // Nothing of the pass is in the stream yet.
  virtual void began(bool backward, Stream& stream) = 0;
  // All work of the layer is in the stream; of the first layer's forward pass also the load of the batch.
  virtual void ended(bool backward, int layer, Stream& stream) = 0;
};

namespace cuda {
class StepLibrary;
}

class CudaNetwork final : public TrainableNetwork {
 public:
  // The device outlives the network. Throws InputError as CpuNetwork does, and RunError if the
  // device's memory does not suffice.
  CudaNetwork(CudaDevice& device, const models::Network& network,
              const TrainableNetworkOptions& options);
  // Layers are computed by the library (runtime/network/cuda/step_library.h), and by our own kernels
  // what libraries do not have. Throws also what the library throws.
  CudaNetwork(CudaDevice& device, const models::Network& network,
              const TrainableNetworkOptions& options, std::unique_ptr<cuda::StepLibrary> library);
  ~CudaNetwork() override;

  [[nodiscard]] const NetworkTraits& traits() const override;
  [[nodiscard]] ArrayView running_statistics() override;
  Token take_weights(const ConstArrayView& weights, int first, int count,
                     const Token& when) override;
  [[nodiscard]] const WorkingCopies* working_copies() const override;
  [[nodiscard]] Token working_copies_read() override;
  void use_working_copies(const Token& written) override;
  PassOutcome forward(std::span<const float> images, std::span<const std::int32_t> labels,
                      Pass pass, std::uint64_t seed = 0) override;
  Token bring(const ConstArrayView& images, std::span<const std::int32_t> labels) override;
  void start_pass(Pass pass, std::uint64_t seed = 0) override;
  [[nodiscard]] PassOutcome outcome() override;
  void compute_gradients(float loss_scale, const ArrayView& gradients,
                         const GradientReady& ready) override;
  void announce_at(const std::vector<int>& parameters) override;
  [[nodiscard]] std::string take_remark() override;
  [[nodiscard]] std::vector<float> logits() const override;
  void observe(LayerObserver* observer) override;
  // `marker` may be null. It must outlive its use. Passes are then put into the stream layer by layer.
  void mark(PassMarker* marker);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace paceline::runtime

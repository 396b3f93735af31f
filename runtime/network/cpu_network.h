// A network that computes on CPUs, by oneDNN. Its passes are complete when they return, and its
// tokens are complete at once.
//
// Activations and the working copies of the weights have the storage type, in whatever layout is
// fastest:
//   fp32   Storage and arithmetic are FP32.
//   bf16   Storage and arithmetic are BF16, and sums are accumulated in FP32, where oneDNN has BF16
//          arithmetic: on CPUs with AVX-512, fastest with AMX. On other CPUs the arithmetic is FP32.
//   fp16   The arithmetic is FP32, because oneDNN 2.6 has no FP16 arithmetic on CPUs.
// Where arithmetic is wider than storage, each operand and each result is rounded to the storage
// type, so that overflow and underflow are that type's. The rounded numbers are held in FP32 words:
// this takes the memory of fp32 and more time. Both forms of bf16 round at the same places, so that
// they differ by the order of the sums inside a layer, and by partial sums of gradients that oneDNN
// rounds where windows of a pool or an LRN overlap. arithmetic() says which form runs.
//
// Batch norm's statistics, its gamma and beta, and the loss are FP32 in every mode (Jizhi, 3.2).
// Gradients of weights and biases come in FP32 from bf16, and rounded to FP16 from fp16.
//
// What models::Layer leaves open: an average pool divides by the elements of its window that lie in
// the input or its padding (PyTorch's count_include_pad), so that what `ceil` adds does not count;
// LRN has k = 2, alpha = 1e-4 and beta = 0.75 (Krizhevsky 2012, 3.3); dropout scales what it keeps
// by 1 / (1 - probability); running variances are of n - 1 samples; momentum 0.1 is PyTorch's.
//
// All memory is taken at construction. Activations, gradients and workspaces share one arena by
// their lives; a ReLU is done by the layer before it where it can, and then takes no time itself.
//
// The same network, weights, batch and number of threads give the same bits.
// Thread safety: one thread at a time.
#pragma once

#include <memory>

#include "runtime/network/trainable_network.h"

namespace paceline::runtime {

class CpuNetwork final : public TrainableNetwork {
 public:
  // Throws InputError that names the layer if shapes do not fit, an LRN is of an even size, or the
  // network does not end in its only softmax_cross_entropy.
  CpuNetwork(const models::Network& network, const TrainableNetworkOptions& options);
  ~CpuNetwork() override;

  [[nodiscard]] const NetworkTraits& traits() const override;
  [[nodiscard]] ArrayView running_statistics() override;
  void drop_weights(int first, int count) override;
  void put_gradients(int first, int count, const ArrayView& memory) override;
  Token take_weights(const ConstArrayView& weights, int first, int count,
                     const Token& when) override;
  PassOutcome forward(std::span<const float> images, std::span<const std::int32_t> labels,
                      Pass pass, std::uint64_t seed = 0) override;
  void compute_gradients(float loss_scale, const ArrayView& gradients,
                         const GradientReady& ready) override;
  [[nodiscard]] std::vector<float> logits() const override;
  void observe(LayerObserver* observer) override;

  // The same with arrays of the host, which need no tokens.
  [[nodiscard]] std::span<float> statistics();
  void set_weights(std::span<const float> weights);
  void set_weights(std::span<const float> weights, int first, int count);
  void backward(float loss_scale, std::span<float> gradients,
                const std::function<void(int)>& ready = {});

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace paceline::runtime

// A models::Network that computes: forward and backward passes on CPUs, by oneDNN.
//
// Weights, gradients and batch-norm statistics are the caller's, as flat FP32 arrays; tensors stand
// in them in backward order (models::NetworkWork::gradients), which is the order of a plan's
// buckets, each in the plain layout that models::ParameterTensor::shape says. Inside, activations
// and the working copies of the weights are of the storage type, in whatever layout is fastest:
//   fp32   all in FP32;
//   bf16   storage and arithmetic in BF16 (AMX where the CPU has it), accumulation in FP32;
//   fp16   storage in FP16, arithmetic in FP32 (oneDNN 2.6 computes no FP16 on CPUs): each operand
//          and each result is rounded to FP16, so that overflow and underflow are FP16's. The
//          rounded numbers are held in FP32 words: it takes the memory of fp32, and more time.
// Batch norm's statistics, its gamma and beta, and the loss are FP32 in every mode (Jizhi, 3.2).
// Gradients of weights and biases come in FP32 from bf16, and rounded to FP16 from fp16.
//
// What models::Layer leaves open: an average pool divides by its kernel's size, padding included;
// LRN has k = 2, alpha = 1e-4 and beta = 0.75 (Krizhevsky 2012, 3.3); dropout scales what it keeps
// by 1 / (1 - probability); running variances are of n - 1 samples; momentum 0.1 is PyTorch's.
//
// All memory is taken at construction. Activations, gradients and workspaces share one arena by
// their lives; a ReLU is done by the layer before it where it can, and then takes no time itself.
//
// The same network, weights, batch and number of threads give the same bits.
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/base/precision.h"
#include "models/network/network.h"
#include "models/network/work.h"

namespace paceline::runtime {

enum class ParameterRole { weight, bias, gamma, beta };

// One parameter tensor, and where it stands in the flat arrays.
struct ParameterPlace {
  std::string name;  // "layer1.0.conv2.weight"
  ParameterRole role = ParameterRole::weight;
  std::vector<std::int64_t> shape;
  std::int64_t offset = 0;  // elements
  std::int64_t elements = 0;
  int layer = 0;  // index into models::Network::layers()
};

// In backward order. Throws InputError as models::work does.
[[nodiscard]] std::vector<ParameterPlace> parameter_places(const models::Network& network);
// Of gradients that are only moved, in their order: flat weights, one behind the other.
[[nodiscard]] std::vector<ParameterPlace> parameter_places(
    std::span<const models::Gradient> gradients);

// He normal for convolutions (fan out, as torchvision) and for fully connected layers uniform as
// PyTorch's (1 / sqrt(fan in)); biases of fully connected layers likewise; gamma 1, beta 0. The
// last gamma of a residual block may start at 0 (Goyal 5.1): that of the deepest batch norm which
// an add reads. Biases of convolutions start at 0. A function of network and seed only.
struct InitialWeights {
  std::uint64_t seed = 1;
  bool zero_last_gamma = false;
};
[[nodiscard]] std::vector<float> initial_weights(const models::Network& network,
                                                 const InitialWeights& how);

enum class Pass { training, evaluation };

// The arithmetic of a storage type of 16 bits: the type's own where oneDNN has it on this CPU, and
// FP32 elsewhere; or FP32 on any CPU.
enum class Arithmetic { best, fp32 };

struct TrainableNetworkOptions {
  int batch = 1;
  models::NumberType storage = models::NumberType::fp32;
  Arithmetic arithmetic = Arithmetic::best;
  int threads = 1;
  double batch_norm_momentum = 0.1;  // of the new batch in the running statistics
  double batch_norm_epsilon = 1e-5;
};

// Of a batch.
struct PassOutcome {
  double loss = 0;             // mean over the samples
  std::int64_t correct = 0;    // samples whose largest logit is the label's
  std::int64_t correct_5 = 0;  // ... among the five largest
};

// Told of each layer's work, for the timeline. `layer` is an index into models::Network::layers().
class LayerObserver {
 public:
  virtual ~LayerObserver() = default;
  virtual void began(bool backward, int layer) = 0;
  virtual void ended(bool backward, int layer) = 0;
};

class TrainableNetwork {
 public:
  // Throws InputError that names the layer if shapes do not fit, an LRN is of an even size, or the
  // network does not end in its only softmax_cross_entropy.
  TrainableNetwork(const models::Network& network, const TrainableNetworkOptions& options);
  TrainableNetwork(TrainableNetwork&&) noexcept;
  TrainableNetwork& operator=(TrainableNetwork&&) noexcept;
  ~TrainableNetwork();

  [[nodiscard]] int batch() const;
  [[nodiscard]] int classes() const;
  // The type that layers compute in: the storage type, or FP32.
  [[nodiscard]] models::NumberType arithmetic() const;
  [[nodiscard]] const std::vector<ParameterPlace>& parameters() const;
  [[nodiscard]] std::int64_t parameter_elements() const;

  // Running means of all batch norms in the order of layers, then their variances; 0 and 1 at
  // first. The caller may write them (a checkpoint, a mean over ranks).
  [[nodiscard]] std::span<float> statistics();

  // Takes new weights into the working copies: all, or parameters [first, first + count).
  // `weights` is the whole flat array.
  void set_weights(std::span<const float> weights);
  void set_weights(std::span<const float> weights, int first, int count);

  // images: batch() x channels x height x width in FP32, NCHW; labels: 0 .. classes() - 1. In an
  // evaluation there may be fewer than batch() samples. `seed` draws the dropout masks. A training
  // pass updates statistics() and keeps what backward() needs, until the next pass. Throws
  // InputError for a label out of range.
  PassOutcome forward(std::span<const float> images, std::span<const std::int32_t> labels,
                      Pass pass, std::uint64_t seed = 0);

  // After a training pass: the gradient of loss_scale * (mean loss) into `gradients`, the whole
  // flat array. In fp16 mode gradients of activations and of weights are rounded to FP16, and
  // overflow to infinity. `ready(i)` is called as soon as the gradient of parameter i is there, in
  // order.
  void backward(float loss_scale, std::span<float> gradients,
                const std::function<void(int)>& ready = {});

  // Of the last training forward pass, for tests: batch() x classes() logits.
  [[nodiscard]] std::vector<float> logits() const;

  // May be null. Must outlive its use.
  void observe(LayerObserver* observer);

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace paceline::runtime

// A models::Network that computes: the interface of networks on any device. The CPU's is
// runtime/network/cpu_network.h.
//
// Weights and gradients are the caller's, as flat FP32 arrays in memory that the network's device
// takes; tensors stand in them in backward order (models::NetworkWork::gradients), which is the
// order of a plan's buckets, each in the plain layout that models::ParameterTensor::shape says.
//
// What is read or written later than a call returns has a token. The same network, weights and
// batch give the same bits.
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
#include "runtime/device/memory.h"
#include "runtime/device/token.h"
#include "runtime/device/working_copies.h"

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

// The parameters of a network in backward order. Throws InputError as models::work does.
[[nodiscard]] std::vector<ParameterPlace> parameter_places(const models::Network& network);
// Places for gradients that are only moved, in their order: flat weights, one behind the other.
[[nodiscard]] std::vector<ParameterPlace> parameter_places(
    std::span<const models::Gradient> gradients);

// He normal for convolutions (fan out, as torchvision) and for fully connected layers uniform as
// PyTorch's (1 / sqrt(fan in)); biases of fully connected layers likewise; gamma 1, beta 0. Embeddings and linear
// layers of sequences are normal of deviation 0.02 with biases 0, and those that an add reads, by themselves or behind
// a dropout, of 0.02 / sqrt(n) for n of them (Radford 2019, 2.3). The
// last gamma of a residual block may start at 0 (Goyal 5.1): that of the deepest batch norm which
// an add reads. Biases of convolutions start at 0. A function of network and seed only.
struct InitialWeights {
  std::uint64_t seed = 1;
  bool zero_last_gamma = false;
};
[[nodiscard]] std::vector<float> initial_weights(const models::Network& network,
                                                 const InitialWeights& how);

// Throws InputError that names a layer, unless the network is one that computes: its kinds of
// layers are in computed_kinds.h, and it ends in its only loss.
void check_trainable(const models::Network& network);
// The same, and each kind of layer is one that GPUs compute, too.
void check_trainable_on_gpus(const models::Network& network);

enum class Pass { training, evaluation };

struct TensorShare;  // tensor_group.h

// The arithmetic of a storage type of 16 bits: the type's own where oneDNN has it on this CPU, and
// FP32 elsewhere; or FP32 on any CPU.
enum class Arithmetic { best, fp32 };

struct TrainableNetworkOptions {
  int batch = 1;
  models::NumberType storage = models::NumberType::fp32;
  Arithmetic arithmetic = Arithmetic::best;
  int threads = 1;
  // Whether passes may be captured and replayed (CUDA graphs), where the device has that. The bits are
  // the same.
  bool replay = true;
  // Where the network is a part of one that ranks share out (models/layout/tensor_part.h); null where it is whole.
  // Networks on CPUs have it.
  const TensorShare* tensor = nullptr;
  double batch_norm_momentum = 0.1;  // of the new batch in the running statistics
  double batch_norm_epsilon = 1e-5;
};

// What a pass over a batch gave.
struct PassOutcome {
  double loss = 0;             // mean over the labels
  std::int64_t correct = 0;    // labels whose logit is the largest
  std::int64_t correct_5 = 0;  // labels that are among the five largest logits
};

// Is told of each layer's work, for the timeline. `layer` is an index into Network::layers().
class LayerObserver {
 public:
  virtual ~LayerObserver() = default;
  virtual void began(bool backward, int layer) = 0;
  virtual void ended(bool backward, int layer) = 0;
};

// What does not change in the life of a network.
struct NetworkTraits {
  int batch = 1;
  int labels =
      1;  // of a sample: each element of a sequence has one where the loss reads a sequence
  int classes = 0;
  // The type that layers compute in: the storage type, or FP32.
  models::NumberType arithmetic = models::NumberType::fp32;
  std::vector<ParameterPlace> parameters = {};

  // The number of elements of all parameters, which is the length of the flat arrays.
  [[nodiscard]] std::int64_t parameter_elements() const {
    return parameters.empty() ? 0 : parameters.back().offset + parameters.back().elements;
  }
  // The elements of `count` parameters from `first` on, which stand side by side.
  [[nodiscard]] std::int64_t elements(int first, int count) const {
    if (count == 0) return 0;
    const ParameterPlace& last = parameters[to_size(first + count - 1)];
    return last.offset + last.elements - parameters[to_size(first)].offset;
  }
};

class TrainableNetwork {
 public:
  // Is called with a parameter and the token of its gradient.
  using GradientReady = std::function<void(int, const Token&)>;

  TrainableNetwork() = default;
  TrainableNetwork(const TrainableNetwork&) = delete;
  TrainableNetwork& operator=(const TrainableNetwork&) = delete;
  virtual ~TrainableNetwork() = default;

  [[nodiscard]] virtual const NetworkTraits& traits() const = 0;
  [[nodiscard]] int batch() const { return traits().batch; }
  [[nodiscard]] int classes() const { return traits().classes; }
  [[nodiscard]] models::NumberType arithmetic() const { return traits().arithmetic; }
  [[nodiscard]] const std::vector<ParameterPlace>& parameters() const {
    return traits().parameters;
  }
  [[nodiscard]] std::int64_t parameter_elements() const { return traits().parameter_elements(); }

  // Running means of all batch norms in the order of layers, then their variances; 0 and 1 at
  // first. Between passes the caller may write them (a checkpoint, a mean over ranks).
  [[nodiscard]] virtual ArrayView running_statistics() = 0;

  // Takes new weights of parameters [first, first + count) into the working copies, once `when` is
  // done. `weights` has them alone, as they stand in the flat array; it may be written again when the token is
  // done. The next pass uses the new weights.
  virtual Token take_weights(const ConstArrayView& weights, int first, int count,
                             const Token& when) = 0;
  // Gives the memory of the working copies of these parameters back where it can: no pass reads them before they are
  // taken again. The caller may take and drop weights while an observer hears of a layer, on the CPU.
  virtual void drop_weights(int /*first*/, int /*count*/) {}

  // The working copies, for an update that writes them together with the masters in place of
  // take_weights(); in the order of parameters(). Null where weights are only taken. What is written
  // are the numbers that take_weights() writes except for zeros that never change, so that weights are
  // taken once before. Such an update begins when working_copies_read() is done, and
  // use_working_copies() is told when it ends.
  [[nodiscard]] virtual const WorkingCopies* working_copies() const { return nullptr; }
  // A token that is done when passes that were started read the working copies no more.
  [[nodiscard]] virtual Token working_copies_read() { return {}; }
  // Passes that are started from here on read the working copies when `written` is done.
  virtual void use_working_copies(const Token& /*written*/) {}

  // images: batch() x channels x height x width in FP32, NCHW, or the tokens of batch() sequences; labels:
  // 0 .. classes() - 1, traits().labels of each sample. In an evaluation there may be fewer than batch() samples. `seed` draws the dropout masks. A training
  // pass updates the running statistics and keeps what backward needs, until the next pass. Throws
  // InputError for a label out of range.
  virtual PassOutcome forward(std::span<const float> images, std::span<const std::int32_t> labels,
                              Pass pass, std::uint64_t seed = 0) = 0;

  // The same in steps, so that the next batch travels to the device while this one is computed.
  //
  // Brings the batch of the next start_pass(), beside passes that run; the host copies no images that are
  // in pinned memory. Images and labels are read until the token is done and start_pass() has returned.
  virtual Token bring(const ConstArrayView& images, std::span<const std::int32_t> labels) {
    brought_images_ = host_floats(images);
    brought_labels_ = labels;
    return {};
  }
  // Starts a forward pass over the batch that was brought last; each is used once. The host goes on
  // while the device computes, and outcome() waits. A backward pass may be started before that.
  virtual void start_pass(Pass pass, std::uint64_t seed = 0) {
    outcome_ = forward(brought_images_, brought_labels_, pass, seed);
  }
  void start_forward(std::span<const float> images, std::span<const std::int32_t> labels, Pass pass,
                     std::uint64_t seed = 0) {
    static_cast<void>(bring(view_of(images), labels));
    start_pass(pass, seed);
  }
  // The outcome of the last pass that was started.
  [[nodiscard]] virtual PassOutcome outcome() { return outcome_; }

  // After a training pass: starts to compute the gradient of loss_scale * (mean loss) into
  // `gradients`, the whole flat array. With FP16 storage gradients of activations and of weights
  // are rounded to FP16, and overflow to infinity. Calls ready(i, token) for each parameter in
  // order; the token is done when the gradient of parameter i is there, and all before it.
  virtual void compute_gradients(float loss_scale, const ArrayView& gradients,
                                 const GradientReady& ready) = 0;

  // While an observer hears that a layer begins its backward pass: the gradients of parameters [first, first + count),
  // none of which has been begun, go to `memory`, where they stand as in the flat array, and not into that. Networks on
  // CPUs have it.
  virtual void put_gradients(int /*first*/, int /*count*/, const ArrayView& /*memory*/) {
    PACELINE_ASSERT(false, "gradients go to the flat array");
  }

  // Says that a caller of compute_gradients() acts on these parameters, in rising order, and on the
  // last; tokens of others may be those of the next of them, which come later. At first it is all.
  virtual void announce_at(const std::vector<int>& /*parameters*/) {}

  // What a user should know of how passes are computed, in one line, and once: that something which
  // was asked for is not done, and why. Empty where there is nothing.
  [[nodiscard]] virtual std::string take_remark() { return {}; }

  // The logits of the last training forward pass, for tests: batch() x traits().labels x classes().
  [[nodiscard]] virtual std::vector<float> logits() const = 0;

  // `observer` may be null. It must outlive its use.
  virtual void observe(LayerObserver* observer) = 0;

 private:
  // Where a pass is computed in the call that starts it.
  std::span<const float> brought_images_;
  std::span<const std::int32_t> brought_labels_;
  PassOutcome outcome_;
};

}  // namespace paceline::runtime

// Optimizers, on FP32 master weights and FP32 gradients in the flat arrays of
// runtime/network/trainable_network.h. The arithmetic is a kernel of the device (UpdateParameters);
// what a recipe says of a step is decided here.
//
// Cost on the CPU: one fused pass over the arrays, bound by memory: 20 bytes an element (weights
// and momentum are read and written, gradients read), 28 with RMSprop and Adam (mean squares, too). LARS
// first reads weights and gradients for their norms, one parameter after the other, so that they
// are still in the cache when they are updated; a parameter larger than the cache costs 28.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/collective/rank_program.h"
#include "runtime/device/device.h"
#include "runtime/network/trainable_network.h"
#include "runtime/training/recipe.h"

namespace paceline::runtime {

// The share of momentum SGD in the transition from RMSprop (Akiba 2017, RMSprop Warm-up); RMSprop
// has the rest. c is the centre, p the period, both in epochs:
//
//   epoch < c:           exp(2 (epoch - c) / p) / 2
//   epoch < c + p / 2:   1 / 2 + (epoch - c) / p
//   else                 1
[[nodiscard]] double sgd_share(const OptimizerRecipe& recipe, double epoch);

class Optimizer {
 public:
  // Its state is in the memory that the device is fastest in. The device outlives the optimizer.
  // `threads` share a step where the device is the CPU.
  Optimizer(Device& device, const OptimizerRecipe& recipe, std::vector<ParameterPlace> parameters,
            int threads = 1);
  // Updates only these parts of the flat arrays, in ascending order: a step leaves all else as it is, and the
  // state holds no more. Throws InputError with LARS, which needs the norms of whole parameters; all constructors
  // throw it for Adam and clip_norm on a GPU, which has no kernels for them yet.
  Optimizer(Device& device, const OptimizerRecipe& recipe,
            const std::vector<ParameterPlace>& parameters,
            const std::vector<models::Elements>& parts, int threads);
  // On the CPU.
  Optimizer(const OptimizerRecipe& recipe, std::vector<ParameterPlace> parameters, int threads = 1);
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Starts one step on all parameters:
  //   g = gradient * gradient_factor + weight decay * w    (decay where the recipe has it)
  //   LARS: rate_l = rate * trust * |w| / (|g'| + decay |w| + epsilon), g' without decay (You 2017,
  //         equation 6); rate where |w| or |g'| is 0, and for parameters that the recipe leaves out
  //   v = momentum v + rate_l g;  w = w - v
  //   Nesterov: w = w - (momentum v + rate_l g), with the new v
  //   Momentum correction (Goyal 2017, section 3, remark 2, equation 10): the old v counts
  //         momentum (rate / last rate), so that v is that of the new rate. Then a step is that of
  //         PyTorch's SGD, whose momentum is a sum of gradients, not of changes:
  //         b = momentum b + g;  w = w - rate b, and with Nesterov w = w - rate (g + momentum b).
  //         A step of rate 0 adds nothing to v.
  //   RMSprop warm-up: m = d m + (1 - d) g^2, share = sgd_share(epoch),
  //         v = momentum v + (rate share + rmsprop rate (1 - share) / (sqrt(m) + epsilon)) g
  //   Adam (Kingma 2014, algorithm 1), for step t from 1, with momentum as beta1:
  //         m = beta1 m + (1 - beta1) g;  s = beta2 s + (1 - beta2) g^2
  //         w = w - rate (m / (1 - beta1^t)) / (sqrt(s / (1 - beta2^t)) + epsilon)
  //   AdamW (Loshchilov 2017, algorithm 2), as PyTorch's: g is without decay, and w = (1 - rate decay) w before.
  // Where `copies` is not null, the new weights go there, too; they are copies of the parameters, and
  // outlive the step. An optimizer of parts has none. `gradients` must be finite. Bit-identical on all ranks for the same input,
  // whatever the number of threads and the CPU.
  void step(Stream& stream, const ArrayView& weights, const ConstArrayView& gradients,
            float gradient_factor, double learning_rate, double epoch,
            const WorkingCopies* copies = nullptr);
  // The same on arrays of the host, done when it returns.
  void step(std::span<float> weights, std::span<const float> gradients, float gradient_factor,
            double learning_rate, double epoch);

  // For each parameter the sum of the squares of the gradients of what the optimizer updates of it, in double precision,
  // for clip_norm.
  [[nodiscard]] std::vector<double> squares_of(const ConstArrayView& gradients) const;

  // The arrays that a checkpoint keeps, to be read and written: "momentum"; with RMSprop and Adam
  // "mean_square"; with Adam "steps", the number of steps so far; with momentum correction "learning_rate", which is the last step's rate. The
  // arrays are FP32, and no step is under way while they are read or written.
  struct State {
    std::string name;
    ArrayView values;
    bool is_of_elements = true;  // an element for each of the parts, one part after the other
  };
  [[nodiscard]] std::vector<State> state();

 private:
  [[nodiscard]] bool decays(const ParameterPlace& parameter) const;
  [[nodiscard]] bool has_own_rate(const ParameterPlace& parameter) const;
  void set_rule_of_adam(double learning_rate, UpdateRule& rule);
  // What the old v is multiplied by: the momentum, corrected where the recipe says so.
  float momentum_factor(double learning_rate);

  OptimizerRecipe recipe_;
  std::unique_ptr<Stream> stream_;  // of the device
  // A part of the flat arrays, with its place in the state.
  struct Part {
    models::Elements place;
    std::size_t of_state = 0;
    UpdateTable table;  // of the tensors in it, whose offsets are from its beginning
    std::vector<std::size_t> parameters;  // that these are of
  };
  std::vector<Part> parts_;
  std::size_t elements_ = 0;    // of the flat arrays
  std::size_t parameters_ = 0;  // their number
  Memory momentum_;
  Memory mean_square_;
  float last_rate_ = 0;  // 0 before the first step
  float steps_ = 0;      // of Adam
};

}  // namespace paceline::runtime

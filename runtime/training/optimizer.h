// Optimizers, on FP32 master weights and FP32 gradients in the flat arrays of
// runtime/network/trainable_network.h.
//
// Cost: one fused pass over the arrays, bound by memory: 20 bytes an element (weights and momentum
// are read and written, gradients read), 28 with RMSprop (mean squares, too). LARS first takes the
// norms of weights and gradients: 8 bytes more where a parameter does not stay in the cache.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/network/trainable_network.h"
#include "runtime/training/recipe.h"

namespace paceline::runtime {

// Of momentum SGD in the transition from RMSprop (Akiba 2017, RMSprop Warm-up); RMSprop's share is
// the rest. c is the centre, p the period:
//
//   epoch < c:           exp(2 (epoch - c) / p) / 2
//   epoch < c + p / 2:   1 / 2 + (epoch - c) / p
//   else                 1
[[nodiscard]] double sgd_share(const OptimizerRecipe& recipe, double epoch);

class Optimizer {
 public:
  Optimizer(const OptimizerRecipe& recipe, std::vector<ParameterPlace> parameters, int threads = 1);

  // One step on all parameters:
  //   g = gradient * gradient_factor + weight decay * w    (decay where the recipe has it)
  //   LARS: rate_l = rate * trust * |w| / (|g'| + decay |w| + epsilon), g' without decay (You
  //   2017);
  //         rate_l = rate where |w| or |g'| is 0, and for parameters that the recipe leaves out
  //   v = momentum v + rate_l g;  w = w - v                (so a change of rate does not rescale v,
  //                                                         unless the recipe corrects momentum)
  //   Nesterov: w = w - (momentum v + rate_l g)
  //   RMSprop warm-up: m = d m + (1 - d) g^2, share = sgd_share(epoch),
  //         v = momentum v + (rate share + rmsprop rate (1 - share) / (sqrt(m) + epsilon)) g
  // `gradients` must be finite. Bit-identical on all ranks for the same input, whatever the number
  // of threads and the CPU.
  void step(std::span<float> weights, std::span<const float> gradients, float gradient_factor,
            double learning_rate, double epoch);

  // What a checkpoint needs: "momentum"; "mean_square" with RMSprop; "learning_rate" (one number,
  // the last step's) with momentum correction. Flat arrays, to be read and written.
  struct State {
    std::string name;
    std::span<float> values;
  };
  [[nodiscard]] std::vector<State> state();

 private:
  // What stays in the cache while it is read twice, and what a thread takes at once.
  struct Block {
    std::size_t parameter = 0;
    std::size_t offset = 0;
    std::size_t elements = 0;
  };
  // What a step does to one parameter.
  struct Factors {
    float rate = 0;
    float decay = 0;
  };

  [[nodiscard]] bool decays(const ParameterPlace& parameter) const;
  [[nodiscard]] bool has_own_rate(const ParameterPlace& parameter) const;
  [[nodiscard]] std::vector<Factors> factors(std::span<const float> weights,
                                             std::span<const float> gradients,
                                             float gradient_factor, double learning_rate) const;
  // action(first block, last block) for pieces of the blocks, one for each thread.
  template <class Action>
  void on_blocks(Action action) const;
  // What v is multiplied by.
  float momentum_factor(double learning_rate);

  OptimizerRecipe recipe_;
  std::vector<ParameterPlace> parameters_;
  std::vector<Block> blocks_;
  std::vector<float> momentum_;
  std::vector<float> mean_square_;
  float last_rate_ = 0;  // 0 before the first step
  int threads_ = 1;
};

}  // namespace paceline::runtime

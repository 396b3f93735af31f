// Optimizers, on FP32 master weights and FP32 gradients in the flat arrays of
// runtime/network/trainable_network.h.
//
// Cost: one fused pass over the arrays, bound by memory: 20 bytes an element (weights and momentum
// are read and written, gradients read), 28 with RMSprop (mean squares, too). LARS first reads
// weights and gradients for their norms, one parameter after the other, so that they are still in
// the cache when they are updated; a parameter larger than the cache costs 28.
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
  //   LARS: rate_l = rate * trust * |w| / (|g'| + decay |w| + epsilon), g' without decay (You 2017,
  //         equation 6); rate where |w| or |g'| is 0, and for parameters that the recipe leaves out
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
  // A stretch of one parameter.
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

  // One call of step().
  struct Step {
    std::span<float> weights;
    std::span<const float> gradients;
    float gradient_factor = 1;
    float momentum = 0;
    double learning_rate = 0;
    double sgd_share = 1;
    std::vector<Factors> factors = {};  // of each parameter
  };

  [[nodiscard]] bool decays(const ParameterPlace& parameter) const;
  [[nodiscard]] bool has_own_rate(const ParameterPlace& parameter) const;
  // Decides which threads take what.
  void cut();
  void add_blocks(std::size_t parameter, std::vector<Block>& blocks) const;
  // LARS: sets the rates of the parameters that have their own, among those of `blocks`. With
  // `threads`, these share the work.
  void set_own_rates(std::span<const Block> blocks, bool threads, Step& step) const;
  void update(std::span<const Block> blocks, const Step& step);
  // action(i) on worker i, all at once.
  template <class Action>
  void on_workers(Action action) const;
  // What v is multiplied by.
  float momentum_factor(double learning_rate);

  OptimizerRecipe recipe_;
  std::vector<ParameterPlace> parameters_;
  std::size_t workers_ = 1;
  std::vector<Block> shared_;  // cut into as many pieces as there are workers
  std::vector<std::vector<std::vector<Block>>> own_;  // of each worker: whole parameters
  std::vector<float> momentum_;
  std::vector<float> mean_square_;
  float last_rate_ = 0;  // 0 before the first step
};

}  // namespace paceline::runtime

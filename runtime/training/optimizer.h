// Optimizers, on FP32 master weights and FP32 gradients in the flat arrays of
// runtime/network/trainable_network.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/network/trainable_network.h"
#include "runtime/training/recipe.h"

namespace paceline::runtime {

class Optimizer {
 public:
  Optimizer(const OptimizerRecipe& recipe, std::vector<ParameterPlace> parameters, int threads = 1);

  // One step on all parameters:
  //   g = gradient * gradient_factor + weight decay * w    (decay where the recipe has it)
  //   LARS: rate_l = rate * trust * |w| / (|g'| + decay |w| + epsilon), g' without decay (You 2017)
  //   v = momentum v + rate_l g;  w = w - v                (so a change of rate does not rescale v)
  // `epoch` places the RMSprop warm-up. Bit-identical on all ranks for the same input, whatever the
  // number of threads.
  void step(std::span<float> weights, std::span<const float> gradients, float gradient_factor,
            double learning_rate, double epoch);

  // What a checkpoint needs: "momentum", and "mean_square" with RMSprop; flat arrays.
  struct State {
    std::string name;
    std::span<float> values;
  };
  [[nodiscard]] std::vector<State> state();

 private:
  OptimizerRecipe recipe_;
  std::vector<ParameterPlace> parameters_;
  std::vector<float> momentum_;
  std::vector<float> mean_square_;
  int threads_ = 1;
};

}  // namespace paceline::runtime

// The arithmetic of optimizers on a stretch of one parameter. It is compiled without contraction of
// a * b + c and in two forms (portable and AVX2). The best form that the CPU has and that
// PACELINE_MAX_KERNELS allows (runtime/tensor/kernel_forms.h) is chosen at run time; all give the
// same bits. One thread.
#pragma once

#include <cstddef>

namespace paceline::runtime {

struct SgdStep {
  float gradient_factor = 1;
  float decay = 0;
  float momentum = 0;  // of the old v; corrected where the rate has changed
  float rate = 0;
  bool nesterov = false;
  float look_ahead = 0;  // with Nesterov: of the new v, which is that of the new rate
};

// g = gradient * gradient_factor + decay * w; v = momentum v + rate g; w = w - v, or with Nesterov
// w = w - (look_ahead v + rate g).
void sgd_step(const SgdStep& step, float* weights, const float* gradients, float* momentum,
              std::size_t count);

struct RmspropStep {
  float gradient_factor = 1;
  float decay = 0;
  float momentum = 0;
  float sgd_rate = 0;
  float rmsprop_rate = 0;
  float square_decay = 0;
  float epsilon = 0;
};

// g as above; m = square_decay m + (1 - square_decay) g^2;
// v = momentum v + (sgd_rate + rmsprop_rate / (sqrt(m) + epsilon)) g; w = w - v.
void rmsprop_step(const RmspropStep& step, float* weights, const float* gradients, float* momentum,
                  float* mean_square, std::size_t count);

struct AdamStep {
  float gradient_factor = 1;
  float decay = 0;   // of the weights, as a part of their gradients
  float shrink = 1;  // of the weights, before the step (decoupled decay)
  float mean_decay = 0;
  float square_decay = 0;
  float rate = 0;             // over the bias of the means
  float root_correction = 1;  // 1 over the root of the bias of the mean squares
  float epsilon = 0;
};

// g as above; m = mean_decay m + (1 - mean_decay) g; s = square_decay s + (1 - square_decay) g^2;
// w = shrink w - rate m / (root_correction sqrt(s) + epsilon).
void adam_step(const AdamStep& step, float* weights, const float* gradients, float* mean,
               float* mean_square, std::size_t count);

// The sums of the squares of two arrays, in double: sixteen sums side by side, added in a fixed
// order.
struct SquareSums {
  double weights = 0;
  double gradients = 0;
};
[[nodiscard]] SquareSums square_sums(const float* weights, const float* gradients,
                                     std::size_t count);

}  // namespace paceline::runtime

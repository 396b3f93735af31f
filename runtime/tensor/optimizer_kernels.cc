// Tests: tests/runtime/training/optimizer_test.cc.
#if !defined(__NO_MATH_ERRNO__)
#error "compile this file with -fno-math-errno -ffp-contract=off, as runtime/CMakeLists.txt does"
#endif

#include "runtime/tensor/optimizer_kernels.h"

#include <cmath>

#include "runtime/tensor/kernels.h"

// A body is inlined into a form for each CPU. (target_clones would do so, too, but its resolvers
// run before a sanitizer is ready.)
#if defined(__x86_64__)
#define PACELINE_AVX2 [[gnu::target("avx2")]]
#else
#define PACELINE_AVX2
#endif

namespace paceline::runtime {
namespace {

template <bool nesterov>
[[gnu::always_inline]] inline void sgd_body(const SgdStep& step, float* __restrict weights,
                                            const float* __restrict gradients,
                                            float* __restrict momentum, std::size_t count) {
  const SgdStep s = step;
  for (std::size_t i = 0; i < count; ++i) {
    const float w = weights[i];
    const float change = s.rate * (gradients[i] * s.gradient_factor + s.decay * w);
    const float v = s.momentum * momentum[i] + change;
    momentum[i] = v;
    weights[i] = w - (nesterov ? s.look_ahead * v + change : v);
  }
}

[[gnu::always_inline]] inline void rmsprop_body(const RmspropStep& step, float* __restrict weights,
                                                const float* __restrict gradients,
                                                float* __restrict momentum,
                                                float* __restrict mean_square, std::size_t count) {
  const RmspropStep s = step;
  for (std::size_t i = 0; i < count; ++i) {
    const float w = weights[i];
    const float g = gradients[i] * s.gradient_factor + s.decay * w;
    const float m = s.square_decay * mean_square[i] + (1 - s.square_decay) * (g * g);
    const float rate = s.sgd_rate + s.rmsprop_rate / (std::sqrt(m) + s.epsilon);
    const float v = s.momentum * momentum[i] + rate * g;
    mean_square[i] = m;
    momentum[i] = v;
    weights[i] = w - v;
  }
}

[[gnu::always_inline]] inline void adam_body(const AdamStep& step, float* __restrict weights,
                                             const float* __restrict gradients,
                                             float* __restrict mean, float* __restrict mean_square,
                                             std::size_t count) {
  const AdamStep s = step;
  for (std::size_t i = 0; i < count; ++i) {
    const float w = weights[i];
    const float g = gradients[i] * s.gradient_factor + s.decay * w;
    const float m = s.mean_decay * mean[i] + (1 - s.mean_decay) * g;
    const float square = s.square_decay * mean_square[i] + (1 - s.square_decay) * (g * g);
    mean[i] = m;
    mean_square[i] = square;
    weights[i] = s.shrink * w - s.rate * (m / (std::sqrt(square) * s.root_correction + s.epsilon));
  }
}

// A square of an FP32 is exact in double, so that contraction could not change the sums.
[[gnu::always_inline]] inline SquareSums square_sums_body(const float* __restrict weights,
                                                          const float* __restrict gradients,
                                                          std::size_t count) {
  constexpr std::size_t lanes = 16;
  double w_sums[lanes] = {};
  double g_sums[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const double w = static_cast<double>(weights[i + lane]);
      w_sums[lane] += w * w;
    }
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const double g = static_cast<double>(gradients[i + lane]);
      g_sums[lane] += g * g;
    }
  }
  for (std::size_t lane = 0; i < count; ++i, ++lane) {
    const double w = static_cast<double>(weights[i]);
    const double g = static_cast<double>(gradients[i]);
    w_sums[lane] += w * w;
    g_sums[lane] += g * g;
  }
  SquareSums sums;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    sums.weights += w_sums[lane];
    sums.gradients += g_sums[lane];
  }
  return sums;
}

template <bool nesterov>
PACELINE_AVX2 void sgd_avx2(const SgdStep& step, float* weights, const float* gradients,
                            float* momentum, std::size_t count) {
  sgd_body<nesterov>(step, weights, gradients, momentum, count);
}
PACELINE_AVX2 void rmsprop_avx2(const RmspropStep& step, float* weights, const float* gradients,
                                float* momentum, float* mean_square, std::size_t count) {
  rmsprop_body(step, weights, gradients, momentum, mean_square, count);
}
PACELINE_AVX2 void adam_avx2(const AdamStep& step, float* weights, const float* gradients,
                             float* mean, float* mean_square, std::size_t count) {
  adam_body(step, weights, gradients, mean, mean_square, count);
}
PACELINE_AVX2 SquareSums square_sums_avx2(const float* weights, const float* gradients,
                                          std::size_t count) {
  return square_sums_body(weights, gradients, count);
}

bool has_avx2() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx2") != 0 && kernel_form() != "portable";
  return has;
#else
  return false;
#endif
}

template <bool nesterov>
void sgd(const SgdStep& step, float* weights, const float* gradients, float* momentum,
         std::size_t count) {
  if (has_avx2()) return sgd_avx2<nesterov>(step, weights, gradients, momentum, count);
  sgd_body<nesterov>(step, weights, gradients, momentum, count);
}

}  // namespace

void sgd_step(const SgdStep& step, float* weights, const float* gradients, float* momentum,
              std::size_t count) {
  if (step.nesterov) return sgd<true>(step, weights, gradients, momentum, count);
  sgd<false>(step, weights, gradients, momentum, count);
}

void rmsprop_step(const RmspropStep& step, float* weights, const float* gradients, float* momentum,
                  float* mean_square, std::size_t count) {
  if (has_avx2()) return rmsprop_avx2(step, weights, gradients, momentum, mean_square, count);
  rmsprop_body(step, weights, gradients, momentum, mean_square, count);
}

void adam_step(const AdamStep& step, float* weights, const float* gradients, float* mean,
               float* mean_square, std::size_t count) {
  if (has_avx2()) return adam_avx2(step, weights, gradients, mean, mean_square, count);
  adam_body(step, weights, gradients, mean, mean_square, count);
}

SquareSums square_sums(const float* weights, const float* gradients, std::size_t count) {
  if (has_avx2()) return square_sums_avx2(weights, gradients, count);
  return square_sums_body(weights, gradients, count);
}

}  // namespace paceline::runtime

#include "runtime/training/optimizer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "runtime/device/cpu_device.h"
#include "runtime/tensor/optimizer_kernels.h"

namespace paceline::runtime {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

Floats random_floats(std::size_t count, unsigned seed, float spread = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, spread);
  Floats values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

std::vector<ParameterPlace> places(
    const std::vector<std::pair<ParameterRole, std::int64_t>>& parts) {
  std::vector<ParameterPlace> all;
  std::int64_t offset = 0;
  for (const auto& [role, elements] : parts) {
    all.push_back({.name = "p" + std::to_string(all.size()),
                   .role = role,
                   .shape = {elements},
                   .offset = offset,
                   .elements = elements,
                   .layer = 0});
    offset += elements;
  }
  return all;
}

std::size_t total(const std::vector<ParameterPlace>& parameters) {
  return static_cast<std::size_t>(parameters.back().offset + parameters.back().elements);
}

const auto all_roles = places({{ParameterRole::weight, 40'000},
                               {ParameterRole::bias, 10},
                               {ParameterRole::gamma, 33},
                               {ParameterRole::beta, 33},
                               {ParameterRole::weight, 1},
                               {ParameterRole::weight, 16'385}});

// The textbook, one element after the other, in double.
class Textbook {
 public:
  Textbook(OptimizerRecipe recipe, std::vector<ParameterPlace> parameters)
      : recipe_(std::move(recipe)),
        parameters_(std::move(parameters)),
        v_(total(parameters_)),
        m_(total(parameters_)) {}

  void step(Doubles& w, const Floats& gradients, double factor, double rate, double epoch) {
    const double correction = recipe_.momentum_correction && last_rate_ > 0 ? rate / last_rate_ : 1;
    last_rate_ = rate;
    ++steps_;
    for (const ParameterPlace& p : parameters_) {
      const bool is_norm = p.role == ParameterRole::gamma || p.role == ParameterRole::beta;
      const bool is_bias = p.role == ParameterRole::bias;
      const bool is_decayed = is_norm   ? recipe_.decay_batch_norm
                              : is_bias ? recipe_.decay_bias
                                        : true;
      const bool has_lars = recipe_.lars.enabled && (is_norm   ? recipe_.lars.batch_norm
                                                     : is_bias ? recipe_.lars.bias
                                                               : true);
      const double decay = is_decayed ? recipe_.weight_decay : 0;
      const auto first = static_cast<std::size_t>(p.offset);
      const auto end = first + static_cast<std::size_t>(p.elements);
      double rate_l = rate;
      if (has_lars) {
        double ww = 0;
        double gg = 0;
        for (std::size_t i = first; i < end; ++i) {
          const double g = static_cast<double>(gradients[i]) * factor;
          ww += w[i] * w[i];
          gg += g * g;
        }
        if (ww > 0 && gg > 0)
          rate_l = rate * recipe_.lars.trust_coefficient * std::sqrt(ww) /
                   (std::sqrt(gg) + decay * std::sqrt(ww) + recipe_.lars.epsilon);
      }
      if (recipe_.is_adam()) {
        for (std::size_t i = first; i < end; ++i)
          adam(static_cast<double>(gradients[i]) * factor, decay, rate, i, w[i]);
        continue;
      }
      for (std::size_t i = first; i < end; ++i) {
        const double g = static_cast<double>(gradients[i]) * factor + decay * w[i];
        double applied = rate_l;
        if (recipe_.kind == OptimizerKind::rmsprop_warm_up) {
          const double share = sgd_share(recipe_, epoch);
          m_[i] = recipe_.rmsprop_decay * m_[i] + (1 - recipe_.rmsprop_decay) * g * g;
          applied = rate * share + (1 - share) * recipe_.rmsprop_rate /
                                       (std::sqrt(m_[i]) + recipe_.rmsprop_epsilon);
        }
        v_[i] = recipe_.momentum * correction * v_[i] + applied * g;
        w[i] -= recipe_.nesterov ? recipe_.momentum * v_[i] + applied * g : v_[i];
      }
    }
  }

 private:
  void adam(double g, double decay, double rate, std::size_t i, double& w) {
    if (recipe_.kind == OptimizerKind::adam)
      g += decay * w;
    else
      w -= rate * decay * w;
    v_[i] = recipe_.momentum * v_[i] + (1 - recipe_.momentum) * g;
    m_[i] = recipe_.square_decay * m_[i] + (1 - recipe_.square_decay) * g * g;
    const double mean = v_[i] / (1 - std::pow(recipe_.momentum, steps_));
    const double square = m_[i] / (1 - std::pow(recipe_.square_decay, steps_));
    w -= rate * mean / (std::sqrt(square) + recipe_.adam_epsilon);
  }

  OptimizerRecipe recipe_;
  std::vector<ParameterPlace> parameters_;
  int steps_ = 0;
  Doubles v_;
  Doubles m_;
  double last_rate_ = 0;
};

void expect_textbook(const OptimizerRecipe& recipe, const std::string& what,
                     double tolerance = 2e-5) {
  Optimizer optimizer(recipe, all_roles);
  Textbook textbook(recipe, all_roles);
  Floats weights = random_floats(total(all_roles), 1);
  Doubles exact(weights.begin(), weights.end());
  const std::vector<double> rates = {0.1, 0.1, 0.2, 0.05, 0.05};
  for (unsigned step = 0; step < 5; ++step) {
    const Floats gradients = random_floats(weights.size(), 2 + step, 64);
    const double epoch = 8 + step;
    optimizer.step(weights, gradients, 1.0F / 1024, rates[step], epoch);
    textbook.step(exact, gradients, 1.0 / 1024, rates[step], epoch);
  }
  double worst = 0;
  for (std::size_t i = 0; i < weights.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(weights[i]) - exact[i]) /
                                std::max(0.01, std::abs(exact[i])));
  EXPECT_LT(worst, tolerance) << what;
}

TEST(Optimizer, DoesWhatTheTextbookDoes) {
  expect_textbook({}, "momentum SGD");
  expect_textbook({.momentum = 0, .weight_decay = 0.1}, "SGD");
  expect_textbook({.nesterov = true, .weight_decay = 0.01, .decay_bias = true}, "Nesterov");
  expect_textbook({.momentum_correction = true, .weight_decay = 0.01, .decay_batch_norm = true},
                  "momentum correction");
  expect_textbook({.nesterov = true, .momentum_correction = true}, "both");
  expect_textbook({.weight_decay = 0.01, .lars = {.enabled = true, .trust_coefficient = 0.1}},
                  "LARS");
  expect_textbook({.weight_decay = 0.01,
                   .lars = {.enabled = true,
                            .trust_coefficient = 0.1,
                            .epsilon = 0.5,
                            .bias = true,
                            .batch_norm = true}},
                  "LARS on all");
  expect_textbook(
      {.kind = OptimizerKind::rmsprop_warm_up, .momentum_correction = true, .weight_decay = 0.01},
      "RMSprop");
  // Adam's step is that of the rounding errors where a gradient is near 0, the more so with a small epsilon.
  expect_textbook({.kind = OptimizerKind::adam, .weight_decay = 0.1, .adam_epsilon = 0.3}, "Adam",
                  1e-4);
  expect_textbook({.kind = OptimizerKind::adamw,
                   .momentum = 0.8,
                   .weight_decay = 0.1,
                   .decay_bias = true,
                   .square_decay = 0.95,
                   .adam_epsilon = 1e-2},
                  "AdamW", 1e-4);
}

// The sum covers each part once, whatever stands between them.
TEST(Optimizer, SumsTheSquaresOfItsOwnGradients) {
  const Floats gradients = random_floats(total(all_roles), 3);
  const std::vector<models::Elements> parts = {{5, 100}, {30'000, 20'000}};
  double expected = 0;
  for (const models::Elements& part : parts)
    for (std::int64_t i = part.begin; i < part.end(); ++i) {
      const auto g = static_cast<double>(gradients[static_cast<std::size_t>(i)]);
      expected += g * g;
    }
  Device& device = cpu_device();
  const Optimizer optimizer(device, {}, all_roles, parts, 1);
  const std::vector<double> squares = optimizer.squares_of(view_of(std::span(gradients)));
  EXPECT_NEAR(std::accumulate(squares.begin(), squares.end(), 0.0), expected, 1e-9 * expected);
}

TEST(Optimizer, DecaysWhatTheRecipeSays) {
  const Floats zero(total(all_roles));
  for (const bool bias : {false, true}) {
    for (const bool batch_norm : {false, true}) {
      Floats weights(zero.size(), 1.0F);
      Optimizer optimizer({.weight_decay = 0.5, .decay_bias = bias, .decay_batch_norm = batch_norm},
                          all_roles);
      optimizer.step(weights, zero, 1, 0.5, 0);
      for (const ParameterPlace& p : all_roles) {
        const bool decays =
            p.role == ParameterRole::weight || (p.role == ParameterRole::bias ? bias : batch_norm);
        EXPECT_EQ(weights[static_cast<std::size_t>(p.offset)], decays ? 0.75F : 1.0F) << p.name;
      }
    }
  }
}

// You 2017: without decay the update is that of the direction of the gradient.
TEST(Lars, DoesNotSeeTheScaleOfGradients) {
  const auto parameters = places({{ParameterRole::weight, 20'000}, {ParameterRole::weight, 7}});
  const OptimizerRecipe recipe{.weight_decay = 0, .lars = {.enabled = true}};
  const Floats gradients = random_floats(total(parameters), 4);
  const Floats first = random_floats(total(parameters), 5);
  Floats plain = first;
  Optimizer(recipe, parameters).step(plain, gradients, 1, 1, 0);
  for (const float scale : {0x1p-20F, 0.25F, 0x1p10F}) {
    Floats scaled_gradients = gradients;
    for (float& g : scaled_gradients) g *= scale;
    Floats weights = first;
    Optimizer(recipe, parameters).step(weights, scaled_gradients, 1, 1, 0);
    EXPECT_EQ(weights, plain) << scale;  // powers of two: to the bit
    weights = first;
    Optimizer(recipe, parameters).step(weights, gradients, scale, 1, 0);
    EXPECT_EQ(weights, plain) << scale;
  }
}

// The first step is trust * rate * |w| long.
TEST(Lars, StepsByAShareOfTheWeights) {
  const auto parameters = places({{ParameterRole::weight, 20'000}});
  Floats weights = random_floats(20'000, 6);
  const Floats before = weights;
  Optimizer({.weight_decay = 0, .lars = {.enabled = true, .trust_coefficient = 0.001}}, parameters)
      .step(weights, random_floats(20'000, 7, 1e4F), 1, 8, 0);
  double step = 0;
  double norm = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    step += std::pow(static_cast<double>(weights[i]) - static_cast<double>(before[i]), 2);
    norm += std::pow(static_cast<double>(before[i]), 2);
  }
  EXPECT_NEAR(std::sqrt(step / norm), 0.008, 1e-6);
}

TEST(Lars, TakesTheGlobalRateWhereANormIsZero) {
  const auto parameters = places({{ParameterRole::weight, 4}, {ParameterRole::weight, 4}});
  const OptimizerRecipe recipe{.weight_decay = 0.25, .lars = {.enabled = true}};
  Floats weights = {0, 0, 0, 0, 1, 1, 1, 1};
  Optimizer(recipe, parameters).step(weights, Floats{1, 2, 3, 4, 0, 0, 0, 0}, 1, 0.5, 0);
  EXPECT_EQ(weights, (Floats{-0.5F, -1, -1.5F, -2, 0.875F, 0.875F, 0.875F, 0.875F}));
}

TEST(Lars, LeavesBiasesAndBatchNormsToTheGlobalRate) {
  const auto parameters = places({{ParameterRole::bias, 2}, {ParameterRole::gamma, 2}});
  Floats weights = {1, 1, 1, 1};
  Optimizer({.lars = {.enabled = true}}, parameters).step(weights, Floats{1, 1, 1, 1}, 1, 0.25, 0);
  EXPECT_EQ(weights, (Floats{0.75F, 0.75F, 0.75F, 0.75F}));
}

// The parts that ranks have, wherever they are cut, are updated as the whole is, and nothing else is.
RC_GTEST_PROP(Optimizer, OfPartsDoesWhatThatOfTheWholeDoesToThem, ()) {
  const std::size_t count = total(all_roles);
  const auto cut = [&] {
    return *rc::gen::inRange<std::int64_t>(0, static_cast<std::int64_t>(count));
  };
  std::vector<std::int64_t> cuts = {cut(), cut(), cut(), cut()};
  std::sort(cuts.begin(), cuts.end());
  const std::vector<models::Elements> parts = {{cuts[0], cuts[1] - cuts[0]},
                                               {cuts[2], cuts[3] - cuts[2]}};
  OptimizerRecipe recipe{.nesterov = *rc::gen::arbitrary<bool>(), .weight_decay = 0.1};
  if (*rc::gen::arbitrary<bool>()) recipe.kind = OptimizerKind::rmsprop_warm_up;
  Optimizer whole(recipe, all_roles);
  Optimizer of_parts(cpu_device(), recipe, all_roles, parts, 2);
  const Floats start = random_floats(count, 1);
  Floats expected = start;
  Floats weights = start;
  for (unsigned step = 0; step < 3; ++step) {
    const Floats gradients = random_floats(count, 2 + step);
    whole.step(expected, gradients, 0.5, 0.1, 1);
    of_parts.step(weights, gradients, 0.5, 0.1, 1);
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const bool is_own = std::any_of(parts.begin(), parts.end(), [at](const models::Elements& part) {
      return part.begin <= at && at < part.end();
    });
    kept += is_own;
    RC_ASSERT(weights[i] == (is_own ? expected[i] : start[i]));
  }
  RC_ASSERT(of_parts.state().front().values.elements == kept);
}

// w_n = w_0 - rate g / (1 - m) (n - m (1 - m^n) / (1 - m)).
TEST(Optimizer, SumsAConstantGradientInClosedForm) {
  const auto parameters = places({{ParameterRole::weight, 1}});
  Optimizer optimizer({.momentum = 0.9, .weight_decay = 0}, parameters);
  Floats weights = {1};
  for (int i = 0; i < 50; ++i) optimizer.step(weights, Floats{0.5F}, 1, 0.01, 0);
  const double expected = 1 - 0.01 * 0.5 / 0.1 * (50 - 0.9 * (1 - std::pow(0.9, 50)) / 0.1);
  EXPECT_NEAR(static_cast<double>(weights[0]), expected, 2e-5);
}

// Remark 2 of Goyal: v is that of the old rate, so that without gradients the steps after a change
// scale with the rate.
TEST(Optimizer, CorrectsMomentumWhenTheRateChanges) {
  const auto parameters = places({{ParameterRole::weight, 1}});
  Optimizer optimizer({.momentum = 0.5, .momentum_correction = true, .weight_decay = 0},
                      parameters);
  Floats weights = {0};
  optimizer.step(weights, Floats{1}, 1, 0.5, 0);
  EXPECT_EQ(weights[0], -0.5F);
  optimizer.step(weights, Floats{0}, 1, 0.125, 0);
  EXPECT_EQ(weights[0], -0.5F - 0.5F * 0.125F);
}

// torch.optim.SGD (PyTorch 1.13, documentation of torch.optim.SGD), one weight in double:
//   g = gradient + weight_decay w;  b = momentum b + g  (b = g in the first step)
//   w = w - lr (nesterov ? g + momentum b : b)
// Goyal 2017, section 3, writes it as equation 9, and says by equation 10 that an optimizer whose
// momentum holds the rate must correct it to do the same when the rate changes.
struct PytorchSgd {
  double momentum = 0.9;
  double weight_decay = 0;
  bool nesterov = false;
  double b = 0;

  void step(double& w, double gradient, double rate) {
    const double g = gradient + weight_decay * w;
    b = momentum * b + g;
    w -= rate * (nesterov ? g + momentum * b : b);
  }
};

// A linear warm-up of eight steps, as that of Goyal 2017 over more, then a decay.
TEST(Optimizer, WithCorrectedMomentumStepsAsPytorchWhateverTheRate) {
  const std::vector<double> rates = {0.0125, 0.025, 0.0375, 0.05, 0.0625, 0.075,
                                     0.0875, 0.1,   0.1,    0.1,  0.01,   0.01};
  const std::vector<ParameterPlace> parameters = places({{ParameterRole::weight, 1'000}});
  for (const bool nesterov : {false, true}) {
    const OptimizerRecipe recipe{
        .momentum = 0.9, .nesterov = nesterov, .momentum_correction = true, .weight_decay = 1e-4};
    Optimizer optimizer(recipe, parameters);
    Floats weights = random_floats(1'000, 31);
    Doubles exact(weights.begin(), weights.end());
    const Doubles start = exact;
    std::vector<PytorchSgd> peers(weights.size(),
                                  {.momentum = 0.9, .weight_decay = 1e-4, .nesterov = nesterov});
    for (std::size_t step = 0; step < rates.size(); ++step) {
      const Floats gradients = random_floats(weights.size(), 32 + static_cast<unsigned>(step));
      optimizer.step(weights, gradients, 1, rates[step], 0);
      for (std::size_t i = 0; i < exact.size(); ++i)
        peers[i].step(exact[i], static_cast<double>(gradients[i]), rates[step]);
      double error = 0;
      double moved = 0;
      for (std::size_t i = 0; i < exact.size(); ++i) {
        error += std::pow(static_cast<double>(weights[i]) - exact[i], 2);
        moved += std::pow(exact[i] - start[i], 2);
      }
      EXPECT_LT(std::sqrt(error / moved), 1e-5) << "step " << step << ", Nesterov " << nesterov;
    }
  }
}

TEST(Optimizer, IsTheSameForAnyNumberOfThreads) {
  const auto parameters = places({{ParameterRole::weight, 1'500'000},
                                  {ParameterRole::gamma, 512},
                                  {ParameterRole::beta, 512},
                                  {ParameterRole::weight, 100'001}});
  const Floats first = random_floats(total(parameters), 8);
  for (const OptimizerRecipe& recipe :
       {OptimizerRecipe{}, OptimizerRecipe{.lars = {.enabled = true}},
        OptimizerRecipe{.kind = OptimizerKind::rmsprop_warm_up}}) {
    Floats expected;
    for (const int threads : {1, 2, 3, 4}) {
      Floats weights = first;
      Optimizer optimizer(recipe, parameters, threads);
      for (unsigned step = 0; step < 2; ++step)
        optimizer.step(weights, random_floats(first.size(), 9 + step), 0.5F, 0.1, 9);
      if (threads == 1) expected = weights;
      EXPECT_TRUE(weights == expected) << threads << " threads";
    }
  }
}

TEST(SgdShare, IsAkibasCurve) {
  const OptimizerRecipe recipe;  // centre 10, period 5
  EXPECT_NEAR(sgd_share(recipe, 0), std::exp(-4) / 2, 1e-15);
  EXPECT_NEAR(sgd_share(recipe, 7.5), std::exp(-1) / 2, 1e-15);
  EXPECT_DOUBLE_EQ(sgd_share(recipe, 10), 0.5);
  EXPECT_NEAR(sgd_share(recipe, 10 - 1e-9), 0.5, 1e-9);                 // continuous,
  EXPECT_NEAR((0.5 - sgd_share(recipe, 10 - 1e-6)) / 1e-6, 0.2, 1e-6);  // and so is its slope
  EXPECT_DOUBLE_EQ(sgd_share(recipe, 11), 0.7);
  EXPECT_DOUBLE_EQ(sgd_share(recipe, 12.5), 1);
  EXPECT_DOUBLE_EQ(sgd_share(recipe, 90), 1);
}

TEST(Rmsprop, IsMomentumSgdAfterTheTransition) {
  Floats rmsprop = random_floats(total(all_roles), 10);
  Floats sgd = rmsprop;
  Optimizer first({.kind = OptimizerKind::rmsprop_warm_up}, all_roles);
  Optimizer second({}, all_roles);
  for (unsigned step = 0; step < 3; ++step) {
    const Floats gradients = random_floats(sgd.size(), 11 + step);
    first.step(rmsprop, gradients, 1, 0.1, 12.5 + step);
    second.step(sgd, gradients, 1, 0.1, 12.5 + step);
    EXPECT_TRUE(rmsprop == sgd) << step;
  }
}

TEST(Optimizer, GoesOnFromItsState) {
  for (const OptimizerRecipe& recipe :
       {OptimizerRecipe{.momentum_correction = true},
        OptimizerRecipe{.kind = OptimizerKind::rmsprop_warm_up, .momentum_correction = true}}) {
    Floats weights = random_floats(total(all_roles), 14);
    const Floats gradients = random_floats(weights.size(), 15);
    Optimizer whole(recipe, all_roles);
    whole.step(weights, gradients, 1, 0.1, 5);
    Optimizer resumed(recipe, all_roles);
    const auto from = whole.state();
    const auto to = resumed.state();
    ASSERT_EQ(from.size(), to.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
      EXPECT_EQ(from[i].name, to[i].name);
      std::ranges::copy(host_floats(from[i].values), host_floats(to[i].values).begin());
    }
    Floats again = weights;
    whole.step(weights, gradients, 1, 0.2, 6);
    resumed.step(again, gradients, 1, 0.2, 6);
    EXPECT_TRUE(weights == again);
  }
}

// The form that this CPU runs has the bits of the plain loop.
TEST(OptimizerKernels, HaveTheBitsOfThePlainLoop) {
  for (std::size_t count = 0; count < 70; ++count) {
    const Floats g = random_floats(count, 20);
    for (const bool nesterov : {false, true}) {
      Floats w = random_floats(count, 21);
      Floats v = random_floats(count, 22);
      Floats w2 = w;
      Floats v2 = v;
      const SgdStep step{.gradient_factor = 0.3F,
                         .decay = 0.01F,
                         .momentum = 0.9F,
                         .rate = 0.7F,
                         .nesterov = nesterov,
                         .look_ahead = 0.8F};
      sgd_step(step, w.data(), g.data(), v.data(), count);
      for (std::size_t i = 0; i < count; ++i) {
        const float change = 0.7F * (g[i] * 0.3F + 0.01F * w2[i]);
        v2[i] = 0.9F * v2[i] + change;
        w2[i] = w2[i] - (nesterov ? 0.8F * v2[i] + change : v2[i]);
      }
      EXPECT_EQ(w, w2);
      EXPECT_EQ(v, v2);
    }
    double sum = 0;
    for (const float x : g) sum += static_cast<double>(x) * static_cast<double>(x);
    EXPECT_NEAR(square_sums(g.data(), g.data(), count).gradients, sum, 1e-12);
    EXPECT_NEAR(square_sums(g.data(), g.data(), count).weights, sum, 1e-12);
  }
}

}  // namespace
}  // namespace paceline::runtime

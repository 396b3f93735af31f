// Softmax cross-entropy as runtime/network/loss.h defines it: from the largest logit, sums in
// double.
#pragma once

#include <cmath>

#include "runtime/network/cuda/bodies/tensor.h"

namespace paceline::runtime::cuda {

// What the loss finds of one sample. The host adds them up, in their order.
struct SampleOutcome {
  double loss = 0;
  double sum = 0;           // of exp(logit - largest)
  float largest = 0;        // logit
  std::int32_t before = 0;  // classes that come before the label's by their logits
};

// One sample each; samples that do not count get nothing.
struct LossForward {
  Tensor logits;
  const std::int32_t* labels = nullptr;
  const PassParameters* pass = nullptr;
  float* plain_logits = nullptr;  // FP32 (sample, class)
  SampleOutcome* outcomes = nullptr;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto n = static_cast<std::int64_t>(index);
    const std::int64_t classes = logits.channels;
    for (std::int64_t c = 0; c < classes; ++c)
      plain_logits[n * classes + c] = logits.at(n * classes + c);
    SampleOutcome outcome;
    if (n < pass->samples) {
      const float* of_sample = plain_logits + n * classes;
      const std::int32_t label = labels[n];
      bool has_nan = false;
      outcome.largest = of_sample[0];
      for (std::int64_t c = 0; c < classes; ++c) {
        const float logit = of_sample[c];
        has_nan = has_nan || logit != logit;
        if (outcome.largest < logit) outcome.largest = logit;
        if (logit > of_sample[label] || (logit == of_sample[label] && c < label)) ++outcome.before;
      }
      if (has_nan) outcome.before = static_cast<std::int32_t>(classes);
      const auto largest = static_cast<double>(outcome.largest);
      for (std::int64_t c = 0; c < classes; ++c)
        outcome.sum += std::exp(static_cast<double>(of_sample[c]) - largest);
      outcome.loss = std::log(outcome.sum) + (largest - static_cast<double>(of_sample[label]));
    }
    outcomes[n] = outcome;
  }
  [[nodiscard]] std::uint64_t count() const { return static_cast<std::uint64_t>(logits.images); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    reads(visitor, logits);
    visitor.read(labels, count());
    visitor.read(pass, 1);
    visitor.write(plain_logits, static_cast<std::size_t>(logits.elements()));
    visitor.write(outcomes, count());
  }
};

// gradient = loss scale / samples * (softmax(logits) - one_hot(label)). One logit each.
struct LossDataGradient {
  const float* plain_logits = nullptr;
  const std::int32_t* labels = nullptr;
  const PassParameters* pass = nullptr;
  const SampleOutcome* outcomes = nullptr;
  Tensor gradient;

  PACELINE_HD void operator()(std::uint64_t index) const {
    const auto i = static_cast<std::int64_t>(index);
    const std::int64_t classes = gradient.channels;
    const std::int64_t n = i / classes;
    const SampleOutcome& of_sample = outcomes[n];
    const double factor =
        static_cast<double>(pass->loss_scale) / static_cast<double>(pass->samples);
    const double softmax =
        std::exp(static_cast<double>(plain_logits[i]) - static_cast<double>(of_sample.largest)) /
        of_sample.sum;
    gradient.set(i,
                 static_cast<float>(factor * (softmax - (i % classes == labels[n] ? 1.0 : 0.0))));
  }
  [[nodiscard]] std::uint64_t count() const {
    return static_cast<std::uint64_t>(gradient.elements());
  }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    visitor.read(plain_logits, count());
    visitor.read(labels, static_cast<std::size_t>(gradient.images));
    visitor.read(pass, 1);
    visitor.read(outcomes, static_cast<std::size_t>(gradient.images));
    writes(visitor, gradient);
  }
};

}  // namespace paceline::runtime::cuda

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

// A block for each sample, and a stretch of classes for each thread; samples that do not count get
// nothing. Sums of threads are added in their order.
struct LossForward {
  static constexpr int phases = 4;
  static constexpr unsigned threads = 128;
  Tensor logits;
  const std::int32_t* labels = nullptr;
  const PassParameters* pass = nullptr;
  float* plain_logits = nullptr;  // FP32 (sample, class)
  SampleOutcome* outcomes = nullptr;

  PACELINE_HD void phase(int p, const Block& block) const {
    const std::int64_t n = block.block;
    const std::int64_t classes = logits.channels;
    float* const of_sample = plain_logits + n * classes;
    auto* const parts = block.shared<SampleOutcome>();  // of threads
    SampleOutcome& own = parts[block.thread];
    const bool counts = n < pass->samples;
    if (p == 0) {
      own = {};
      bool is_first = true;
      for (std::int64_t c = block.thread; c < classes; c += block.threads) {
        const float logit = logits.at(n * classes + c);
        of_sample[c] = logit;
        if (is_first || own.largest < logit) own.largest = logit;
        is_first = false;
        if (logit != logit) own.before = 1;  // here: whether one is no number
      }
    } else if (p == 1 && block.thread == 0) {
      for (std::int64_t t = 1; t < busy(block); ++t) {
        if (own.largest < parts[t].largest) own.largest = parts[t].largest;
        own.before |= parts[t].before;
      }
      SampleOutcome& whole = parts[block.threads];
      whole = {};
      whole.largest = own.largest;
      whole.before = own.before;
    } else if (p == 2 && counts) {
      const float largest = parts[block.threads].largest;
      const std::int32_t label = labels[n];
      own = {};
      for (std::int64_t c = block.thread; c < classes; c += block.threads) {
        const float logit = of_sample[c];
        if (logit > of_sample[label] || (logit == of_sample[label] && c < label)) ++own.before;
        own.sum += std::exp(static_cast<double>(logit) - static_cast<double>(largest));
      }
    } else if (p == 3 && block.thread == 0) {
      SampleOutcome outcome;
      if (counts) {
        const SampleOutcome& whole = parts[block.threads];
        outcome.largest = whole.largest;
        for (std::int64_t t = 0; t < busy(block); ++t) {
          outcome.sum += parts[t].sum;
          outcome.before += parts[t].before;
        }
        if (whole.before != 0) outcome.before = static_cast<std::int32_t>(classes);
        outcome.loss = std::log(outcome.sum) + (static_cast<double>(outcome.largest) -
                                                static_cast<double>(of_sample[labels[n]]));
      }
      outcomes[n] = outcome;
    }
  }
  // Threads that have classes.
  [[nodiscard]] PACELINE_HD std::int64_t busy(const Block& block) const {
    return logits.channels < block.threads ? logits.channels : block.threads;
  }
  [[nodiscard]] unsigned blocks() const { return static_cast<unsigned>(logits.images); }
  [[nodiscard]] std::size_t shared_bytes() const { return (threads + 1) * sizeof(SampleOutcome); }
  template <class Visitor>
  void access(const Visitor& visitor) const {
    const auto samples = static_cast<std::size_t>(logits.images);
    reads(visitor, logits);
    visitor.read(labels, samples);
    visitor.read(pass, 1);
    visitor.write(plain_logits, static_cast<std::size_t>(logits.elements()));
    visitor.write(outcomes, samples);
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

// Tests: tests/runtime/network_parts_test.cc.
#include "runtime/network/loss.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "models/base/to_size.h"

namespace paceline::runtime {
namespace {

// Logits from which several threads are faster than one.
constexpr std::size_t least_parallel = 1 << 14;

double exponential(float logit, float largest) {
  return std::exp(static_cast<double>(logit) - static_cast<double>(largest));
}

double sum_of_exponentials(std::span<const float> logits, float largest) {
  double sum = 0;
  for (const float logit : logits) sum += exponential(logit, largest);
  return sum;
}

// The logits of one label.
struct Row {
  std::span<const float> logits;
  float largest = 0;
  double sum = 0;  // of the exponentials, over that of the largest

  Row(std::span<const float> all, std::size_t classes, std::size_t label)
      : logits(all.subspan(label * classes, classes)),
        largest(*std::max_element(logits.begin(), logits.end())),
        sum(sum_of_exponentials(logits, largest)) {}
};

// How many classes come before the label's by their logits; all, if one is NaN.
std::size_t rank(std::span<const float> logits, std::size_t label) {
  std::size_t before = 0;
  for (std::size_t c = 0; c < logits.size(); ++c) {
    if (std::isnan(logits[c])) return logits.size();
    before += logits[c] > logits[label] || (logits[c] == logits[label] && c < label) ? 1 : 0;
  }
  return before;
}

}  // namespace

PassOutcome softmax_cross_entropy(std::span<const float> logits, std::size_t classes,
                                  std::span<const std::int32_t> labels) {
  std::vector<double> losses(labels.size());
  std::vector<std::size_t> before(labels.size());
  const auto count = static_cast<std::ptrdiff_t>(labels.size());
#pragma omp parallel for schedule(static) if (labels.size() * classes > least_parallel)
  for (std::ptrdiff_t number = 0; number < count; ++number) {
    const auto i = to_size(number);
    const Row row(logits, classes, i);
    const auto label = to_size(labels[i]);
    losses[i] = std::log(row.sum) +
                (static_cast<double>(row.largest) - static_cast<double>(row.logits[label]));
    before[i] = rank(row.logits, label);
  }
  PassOutcome outcome;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    outcome.loss += losses[i];
    outcome.correct += before[i] < 1 ? 1 : 0;
    outcome.correct_5 += before[i] < std::min<std::size_t>(5, classes) ? 1 : 0;
  }
  outcome.loss /= static_cast<double>(labels.size());
  return outcome;
}

void softmax_cross_entropy_gradient(std::span<const float> logits, std::size_t classes,
                                    std::span<const std::int32_t> labels, float scale,
                                    std::span<float> gradient) {
  const double factor = static_cast<double>(scale) / static_cast<double>(labels.size());
  const auto count = static_cast<std::ptrdiff_t>(labels.size());
#pragma omp parallel for schedule(static) if (labels.size() * classes > least_parallel)
  for (std::ptrdiff_t number = 0; number < count; ++number) {
    const auto i = to_size(number);
    const Row row(logits, classes, i);
    const auto label = to_size(labels[i]);
    for (std::size_t c = 0; c < classes; ++c) {
      const double softmax = exponential(row.logits[c], row.largest) / row.sum;
      gradient[i * classes + c] = static_cast<float>(factor * (softmax - (c == label ? 1.0 : 0.0)));
    }
  }
}

}  // namespace paceline::runtime

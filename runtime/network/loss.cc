// Tests: tests/runtime/network_parts_test.cc, tests/runtime/tensor_parallel_test.cc.
#include "runtime/network/loss.h"

#include <algorithm>
#include <cmath>

#include "models/base/to_size.h"

namespace paceline::runtime {
namespace {

// Logits from which several threads are faster than one.
constexpr std::size_t least_parallel = 1 << 14;

double exponential(float logit, float largest) {
  return std::exp(static_cast<double>(logit) - static_cast<double>(largest));
}

}  // namespace

SoftmaxLoss::SoftmaxLoss(std::size_t classes, const TensorShare* share)
    : classes_(classes),
      share_(share),
      ranks_(share == nullptr ? 1 : to_size(share->part.ranks)),
      first_class_(share == nullptr ? 0 : static_cast<std::ptrdiff_t>(classes) * share->part.rank) {
}

std::ptrdiff_t SoftmaxLoss::own_class(std::int32_t label) const {
  const std::ptrdiff_t own = label - first_class_;
  return own >= 0 && own < static_cast<std::ptrdiff_t>(classes_) ? own : -1;
}

void SoftmaxLoss::find_largest(std::span<const float> logits,
                               std::span<const std::int32_t> labels) {
#pragma omp parallel for schedule(static) if (logits.size() > least_parallel)
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const std::span<const float> own = logits_of(logits, i);
    const std::ptrdiff_t label = own_class(labels[i]);
    rows_[i] = {.largest = *std::max_element(own.begin(), own.end()),
                .label = label < 0 ? 0.0F : own[to_size(label)]};
  }
}

void SoftmaxLoss::add_up(std::span<const float> logits, std::span<const std::int32_t> labels) {
#pragma omp parallel for schedule(static) if (logits.size() > least_parallel)
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const std::span<const float> own = logits_of(logits, i);
    const std::ptrdiff_t label = labels[i] - first_class_;
    Row& row = rows_[i];
    for (std::size_t c = 0; c < own.size(); ++c) {
      row.sum += exponential(own[c], row.largest);
      const bool is_lower = static_cast<std::ptrdiff_t>(c) < label;
      row.before += own[c] > row.label || (own[c] == row.label && is_lower) ? 1 : 0;
    }
    if (std::isnan(row.sum)) row.before = classes_ * ranks_;
  }
}

// Each rank has a place for its own largest logits, and zeros in those of others. The logit of a label is that of the
// rank which has its class.
void SoftmaxLoss::share_largest() {
  if (share_ == nullptr) return;
  const std::size_t rows = rows_.size();
  shared_.assign((ranks_ + 1) * rows, 0.0F);
  const std::size_t own = to_size(share_->part.rank) * rows;
  for (std::size_t i = 0; i < rows; ++i) {
    shared_[own + i] = rows_[i].largest;
    shared_[ranks_ * rows + i] = rows_[i].label;
  }
  share_->group.sum(view_of(std::span(shared_)));
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t rank = 0; rank < ranks_; ++rank)
      rows_[i].largest = std::max(rows_[i].largest, shared_[rank * rows + i]);
    rows_[i].label = shared_[ranks_ * rows + i];
  }
}

// A sum in double precision travels as two numbers, and is added in the order of ranks.
void SoftmaxLoss::share_sums() {
  if (share_ == nullptr) return;
  const std::size_t rows = rows_.size();
  shared_.assign((2 * ranks_ + 1) * rows, 0.0F);
  const std::size_t own = to_size(share_->part.rank) * 2 * rows;
  for (std::size_t i = 0; i < rows; ++i) {
    const auto high = static_cast<float>(rows_[i].sum);
    shared_[own + 2 * i] = high;
    shared_[own + 2 * i + 1] = static_cast<float>(rows_[i].sum - static_cast<double>(high));
    shared_[2 * ranks_ * rows + i] = static_cast<float>(rows_[i].before);
  }
  share_->group.sum(view_of(std::span(shared_)));
  for (std::size_t i = 0; i < rows; ++i) {
    rows_[i].sum = 0;
    for (std::size_t rank = 0; rank < ranks_; ++rank)
      for (std::size_t part = 0; part < 2; ++part)
        rows_[i].sum += static_cast<double>(shared_[rank * 2 * rows + 2 * i + part]);
    rows_[i].before = static_cast<std::size_t>(shared_[2 * ranks_ * rows + i]);
  }
}

PassOutcome SoftmaxLoss::outcome(std::span<const float> logits,
                                 std::span<const std::int32_t> labels) {
  rows_.resize(labels.size());
  const std::span<const float> of_labels = logits.first(labels.size() * classes_);
  find_largest(of_labels, labels);
  share_largest();
  add_up(of_labels, labels);
  share_sums();
  PassOutcome outcome;
  for (const Row& row : rows_) {
    outcome.loss +=
        std::log(row.sum) + (static_cast<double>(row.largest) - static_cast<double>(row.label));
    outcome.correct += row.before < 1 ? 1 : 0;
    outcome.correct_5 += row.before < std::min<std::size_t>(5, classes_ * ranks_) ? 1 : 0;
  }
  outcome.loss /= static_cast<double>(labels.size());
  return outcome;
}

void SoftmaxLoss::gradient(std::span<const float> logits, std::span<const std::int32_t> labels,
                           float scale, std::span<float> gradient) const {
  PACELINE_ASSERT(rows_.size() == labels.size(), "the gradient follows the outcome");
  const double factor = static_cast<double>(scale) / static_cast<double>(labels.size());
#pragma omp parallel for schedule(static) if (logits.size() > least_parallel)
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const std::span<const float> own = logits_of(logits, i);
    const std::ptrdiff_t label = own_class(labels[i]);
    for (std::size_t c = 0; c < own.size(); ++c) {
      const double softmax = exponential(own[c], rows_[i].largest) / rows_[i].sum;
      const double hit = static_cast<std::ptrdiff_t>(c) == label ? 1.0 : 0.0;
      gradient[i * classes_ + c] = static_cast<float>(factor * (softmax - hit));
    }
  }
}

}  // namespace paceline::runtime

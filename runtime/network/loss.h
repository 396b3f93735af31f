// Softmax cross-entropy, in FP32 from the largest logit (log-sum-exp), its sums in double. The bits do not depend on
// the number of OpenMP's threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/network/tensor_group.h"
#include "runtime/network/trainable_network.h"

namespace paceline::runtime {

// Labels have `classes` logits each, and are in 0 .. classes - 1. Where ranks have the logits of a share of the classes
// each, these are a rank's own, labels count the classes of all ranks, and all ranks get one outcome.
class SoftmaxLoss {
 public:
  explicit SoftmaxLoss(std::size_t classes, const TensorShare* share = nullptr);

  // The mean over all labels. A label is correct if no other logit is larger, and none of a lower class equal; among
  // the five likewise. A label with a NaN is wrong, and its loss NaN.
  [[nodiscard]] PassOutcome outcome(std::span<const float> logits,
                                    std::span<const std::int32_t> labels);
  // gradient = scale / labels.size() * (softmax(logits) - one_hot(label)), behind outcome() of the same ones.
  void gradient(std::span<const float> logits, std::span<const std::int32_t> labels, float scale,
                std::span<float> gradient) const;

 private:
  // A label's numbers.
  struct Row {
    float largest = 0;  // of its logits
    float label = 0;    // its own logit
    double sum = 0;     // of the exponentials, over that of the largest
    std::size_t before =
        0;  // classes that come before the label's by their logits; all, if one is NaN
  };

  // The label's class among those of this rank; -1 where it is not one of them.
  [[nodiscard]] std::ptrdiff_t own_class(std::int32_t label) const;
  [[nodiscard]] std::span<const float> logits_of(std::span<const float> logits,
                                                 std::size_t row) const {
    return logits.subspan(row * classes_, classes_);
  }
  void find_largest(std::span<const float> logits, std::span<const std::int32_t> labels);
  void add_up(std::span<const float> logits, std::span<const std::int32_t> labels);
  void share_largest();
  void share_sums();

  std::size_t classes_;
  const TensorShare* share_;
  std::size_t ranks_;
  std::ptrdiff_t first_class_;
  std::vector<Row> rows_;
  std::vector<float> shared_;
};

}  // namespace paceline::runtime

// Softmax cross-entropy, in FP32 from the largest logit (log-sum-exp), its sums in double. The bits do not depend on
// the number of OpenMP's threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/network/trainable_network.h"

namespace paceline::runtime {

// The mean over all labels, each with `classes` logits; labels are in 0 .. classes - 1.
// A label is correct if no other logit is larger, and none of a lower class equal; among the five
// likewise. A label with a NaN is wrong, and its loss NaN.
[[nodiscard]] PassOutcome softmax_cross_entropy(std::span<const float> logits, std::size_t classes,
                                                std::span<const std::int32_t> labels);

// gradient = scale / labels.size() * (softmax(logits) - one_hot(label)).
void softmax_cross_entropy_gradient(std::span<const float> logits, std::size_t classes,
                                    std::span<const std::int32_t> labels, float scale,
                                    std::span<float> gradient);

}  // namespace paceline::runtime

// What every network that computes checks of a batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/network/trainable_network.h"

namespace paceline::runtime {

// The number of logits of a label, from the network's loss, and that of a sample's labels. The network is
// check_trainable().
[[nodiscard]] int count_classes(const models::Network& network);
[[nodiscard]] int count_labels(const models::Network& network);

// Throws InputError unless the batch and the number of threads are at least 1.
void check_options(const TrainableNetworkOptions& options);

// Throws InputError for a label out of range. Asserts that each sample has its image of
// `input_elements` numbers.
void check_batch(const NetworkTraits& traits, std::size_t input_elements,
                 std::span<const float> images, std::span<const std::int32_t> labels);
// Asserts that a training pass has the labels of a whole batch, and an evaluation those of 1 to a batch of samples.
void check_samples(const NetworkTraits& traits, std::size_t labels, Pass pass);

}  // namespace paceline::runtime

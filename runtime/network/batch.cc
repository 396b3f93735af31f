// Tests: tests/runtime/network_test.cc.
#include "runtime/network/batch.h"

#include <string>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/network/shape_inference.h"

namespace paceline::runtime {

namespace {

models::Shape logits_shape(const models::Network& network) {
  const int logits = network.layers().back().inputs.front();
  if (logits == models::network_input) return network.input();
  return models::infer_shapes(network)[to_size(logits)];
}

}  // namespace

int count_classes(const models::Network& network) {
  return static_cast<int>(logits_shape(network).channels);
}
int count_labels(const models::Network& network) {
  return static_cast<int>(logits_shape(network).height);
}

void check_options(const TrainableNetworkOptions& options) {
  if (options.batch < 1)
    throw InputError("a batch of " + std::to_string(options.batch), "use 1 or more");
  if (options.threads < 1)
    throw InputError(std::to_string(options.threads) + " threads", "use 1 or more");
}

void check_batch(const NetworkTraits& traits, std::size_t input_elements,
                 std::span<const float> images, std::span<const std::int32_t> labels) {
  PACELINE_ASSERT(images.size() * to_size(traits.labels) == labels.size() * input_elements,
                  "each sample has its labels");
  for (const std::int32_t label : labels) {
    if (label < 0 || label >= traits.classes)
      throw InputError("label " + std::to_string(label) + " in a network of " +
                           std::to_string(traits.classes) + " classes",
                       "use labels from 0 to " + std::to_string(traits.classes - 1));
  }
}

void check_samples(const NetworkTraits& traits, std::size_t labels, Pass pass) {
  const auto batch = to_size(traits.batch);
  const std::size_t samples = labels / to_size(traits.labels);
  PACELINE_ASSERT(pass == Pass::training ? samples == batch : samples >= 1 && samples <= batch,
                  "a training pass has a whole batch, an evaluation 1 to a batch");
}

}  // namespace paceline::runtime

// Tests: tests/runtime/network_test.cc.
#include <algorithm>

#include "models/base/error.h"
#include "runtime/network/computed_kinds.h"
#include "runtime/network/trainable_network.h"

namespace paceline::runtime {

void check_trainable(const models::Network& network) {
  const auto& layers = network.layers();
  const auto computes = [](const models::Layer& layer) {
    return std::visit([](const auto& kind) { return is_computed<std::decay_t<decltype(kind)>>; },
                      layer.kind);
  };
  const auto unknown = std::find_if_not(layers.begin(), layers.end(), computes);
  if (unknown != layers.end())
    throw InputError("layer '" + unknown->name + "' is of kind " +
                         std::string(models::name(unknown->kind)) + ", which is not trained yet",
                     "predict, scale and replay take such networks");
  const auto windowed = std::ranges::find_if(layers, [](const models::Layer& layer) {
    const auto* const attention = std::get_if<models::Attention>(&layer.kind);
    return attention != nullptr && attention->sliding_window > 0;
  });
  if (windowed != layers.end())
    throw InputError(
        "layer '" + windowed->name + "' has a sliding window, which is not trained yet",
        "predict, scale and replay take such networks");
  const auto is_loss = [](const models::Layer& layer) {
    return std::holds_alternative<models::SoftmaxCrossEntropy>(layer.kind);
  };
  const auto loss = std::find_if(layers.begin(), layers.end(), is_loss);
  if (loss == layers.end())
    throw InputError("network '" + network.name() + "' ends in layer '" + layers.back().name +
                         "', which is no loss",
                     "add a softmax_cross_entropy");
  if (loss != layers.end() - 1)
    throw InputError("layer '" + loss->name + "' is a loss and not the last layer",
                     "end the network there: training takes one loss");
}

}  // namespace paceline::runtime

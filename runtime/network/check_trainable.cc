// Tests: tests/runtime/network_test.cc.
#include <algorithm>

#include "models/base/error.h"
#include "runtime/network/trainable_network.h"

namespace paceline::runtime {

void check_trainable(const models::Network& network) {
  const auto& layers = network.layers();
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

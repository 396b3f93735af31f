// Tests: tests/cli/command_test.py.
#include "models/network/network_json.h"

#include "models/base/json.h"

namespace paceline::models {
namespace {

Json layer_json(const LayerWork& layer) {
  Json tensors = Json::array();
  for (const ParameterTensor& tensor : layer.parameters)
    tensors.push_back(
        {{"name", tensor.name}, {"shape", tensor.shape}, {"elements", tensor.elements}});
  return {{"name", layer.name},
          {"kind", layer.kind},
          {"output", to_text(layer.output)},
          {"parameters", layer.parameter_elements()},
          {"tensors", std::move(tensors)},
          {"forward_flops", layer.forward_flops},
          {"data_gradient_flops", layer.data_gradient_flops},
          {"weight_gradient_flops", layer.weight_gradient_flops},
          {"forward_read_elements", layer.forward_read},
          {"forward_written_elements", layer.forward_written},
          {"backward_read_elements", layer.backward_read},
          {"backward_written_elements", layer.backward_written},
          {"forward_weight_elements", layer.forward_weights()},
          {"backward_weight_elements", layer.backward_weights()},
          {"kept_elements", layer.kept}};
}

}  // namespace

std::string to_json(const NetworkWork& network) {
  Json layers = Json::array();
  for (const LayerWork& layer : network.layers) layers.push_back(layer_json(layer));
  Json gradients = Json::array();
  for (const Gradient& gradient : network.gradients)
    gradients.push_back({{"name", gradient.name}, {"elements", gradient.elements}});
  Json document = {
      {"schema", "paceline.network/1"},           {"name", network.name},
      {"parameters", network.parameters()},       {"parameter_tensors", network.gradients.size()},
      {"forward_flops", network.forward_flops()}, {"backward_flops", network.backward_flops()},
      {"kept_elements", network.kept()},          {"input_elements", network.input_elements}};
  if (network.sequence > 0) document["sequence"] = network.sequence;
  document["layers"] = std::move(layers);
  document["gradients"] = std::move(gradients);
  return document.indented();
}

}  // namespace paceline::models

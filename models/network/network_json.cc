// Tests: tests/cli/command_test.py, tests/cli/schemas_test.py.
#include "models/network/network_json.h"

namespace paceline::models {
namespace {

const Document<ParameterTensor>& tensor_document() {
  static const auto document = Document<ParameterTensor>()
                                   .add("name", &ParameterTensor::name)
                                   .add("shape", &ParameterTensor::shape, list_of(at_least(1)))
                                   .add("elements", &ParameterTensor::elements, at_least(1));
  return document;
}

const Document<LayerWork>& layer_document() {
  using Layer = LayerWork;
  static const auto document =
      Document<Layer>()
          .add("name", &Layer::name)
          .add("kind", &Layer::kind)
          .add(
              "output", [](const Layer& layer) { return to_text(layer.output); }, any_text())
          .add("parameters", &Layer::parameter_elements)
          .add("tensors", &Layer::parameters, tensor_document())
          .add("forward_flops", &Layer::forward_flops)
          .add("data_gradient_flops", &Layer::data_gradient_flops)
          .add("weight_gradient_flops", &Layer::weight_gradient_flops)
          .add("forward_read_elements", &Layer::forward_read)
          .add("forward_written_elements", &Layer::forward_written)
          .add("backward_read_elements", &Layer::backward_read)
          .add("backward_written_elements", &Layer::backward_written)
          .add("forward_weight_elements", &Layer::forward_weights)
          .add("backward_weight_elements", &Layer::backward_weights)
          .add("kept_elements", &Layer::kept);
  return document;
}

const Document<Gradient>& gradient_document() {
  static const auto document = Document<Gradient>()
                                   .add("name", &Gradient::name)
                                   .add("elements", &Gradient::elements, at_least(1));
  return document;
}

}  // namespace

const Document<NetworkWork>& network_document() {
  using Work = NetworkWork;
  static const auto document =
      Document<Work>("paceline.network/1",
                     "paceline show network --json: layers, their work and their gradients.")
          .add("name", &Work::name)
          .add("parameters", &Work::parameters)
          .add("parameter_tensors", [](const Work& work) { return work.gradients.size(); })
          .add("forward_flops", &Work::forward_flops)
          .add("backward_flops", &Work::backward_flops)
          .add("kept_elements", &Work::kept)
          .add("input_elements", &Work::input_elements)
          .add_if_any(
              "sequence",
              [](const Work& work) {
                return work.sequence > 0 ? std::optional(work.sequence) : std::nullopt;
              },
              at_least(1))
          .add("layers", &Work::layers, layer_document(), 1)
          .add("gradients", &Work::gradients, gradient_document(), 1);
  return document;
}

}  // namespace paceline::models

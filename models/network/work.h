// What a network costs, layer by layer: parameters, FLOPs, elements moved and kept.
//
// This is all that the simulator reads of a network. Counts are exact, and for one sample where not
// said otherwise. Elements become bytes where a precision is known.
//
// FLOPs: a multiply-add is 2. As the field counts, only convolutions and fully connected layers
// have any, and their bias adds none: all other layers are memory traffic. Each of the two
// gradients of such a layer costs as much as its forward pass.
//
// Traffic: it counts activations, not parameters, each operand once for each pass. Batch norm makes
// two passes over its input. An add has no backward traffic (its gradient is that of each input),
// and a flatten has none at all (it is a view).
//
// Kept for backward: the input of convolution, fully connected, batch norm, LRN (which keeps its
// scale too) and the loss; the output of ReLU (in place); one element for each output of max
// pooling (its index) and of dropout (its mask). Others keep nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/network/network.h"
#include "models/network/shape.h"

namespace paceline::models {

// One trainable tensor; its gradient is what the all-reduce moves.
struct ParameterTensor {
  std::string name;  // "layer1.0.conv2.weight"
  std::vector<std::int64_t>
      shape;  // (out, in / groups, kernel h, kernel w), (out, in) or (channels)
  std::int64_t elements = 0;
};

struct LayerWork {
  std::string name;
  std::string kind;  // as in the YAML vocabulary: "convolution", "batch_norm", ...
  Shape output;      // of one sample
  std::vector<ParameterTensor> parameters;  // as declared: weight, then bias

  std::int64_t forward_flops = 0;
  std::int64_t data_gradient_flops = 0;  // 0 for layers that see only the network's input
  std::int64_t weight_gradient_flops = 0;

  // Activation elements read and written, each tensor once a pass (a fused kernel's traffic).
  std::int64_t forward_read = 0;
  std::int64_t forward_written = 0;
  std::int64_t backward_read = 0;
  std::int64_t backward_written = 0;
  // Activation elements that forward must keep for backward.
  std::int64_t kept = 0;

  [[nodiscard]] std::int64_t parameter_elements() const;
  [[nodiscard]] std::int64_t backward_flops() const {
    return data_gradient_flops + weight_gradient_flops;
  }
};

// A gradient in the order in which backpropagation produces them: layers in reverse
// topological order, and within a layer the reverse of the declaration (bias first).
struct Gradient {
  std::string name;
  std::int64_t elements = 0;
  int layer = 0;  // index into NetworkWork::layers
};

struct NetworkWork {
  std::string name;
  std::vector<LayerWork> layers;  // forward (topological) order
  std::vector<Gradient> gradients;
  std::int64_t input_elements = 0;  // of one sample

  [[nodiscard]] std::int64_t parameters() const;
  [[nodiscard]] std::int64_t forward_flops() const;
  [[nodiscard]] std::int64_t backward_flops() const;
  [[nodiscard]] std::int64_t kept() const;
};

// Throws InputError that names the layer if shapes do not fit together (shape_inference.h), or if
// the forward FLOPs of the network exceed 2^53, so that no total overflows. O(layers).
[[nodiscard]] NetworkWork work(const Network& network);

}  // namespace paceline::models

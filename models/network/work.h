// What a network costs, layer by layer: parameters, FLOPs, elements moved and kept.
//
// This is all that the simulator reads of a network. Counts are exact, and for one sample where not
// said otherwise. Elements become bytes where a precision is known.
//
// FLOPs: a multiply-add is 2. As the field counts, only convolutions, fully connected and linear
// layers and the two products of attention have any, and a bias adds none: all other layers are
// memory traffic. Each of the two gradients of such a layer costs as much as its forward pass;
// attention has no weights, and each of its products has the gradients of two inputs; where it is fused,
// backward also computes the scores anew, and a causal one has half of the square.
//
// Traffic: it counts activations, not parameters, each operand once for each pass. Batch norm makes two passes over
// its input. An add has no backward traffic (its gradient is that of each input), and a flatten and a rearrangement
// that is a view have none at all. A slice is a view whose gradient is copied; other rearrangements and a pad copy
// in both passes. Attention computes its scores, their softmax and its dropout one after the other, each of heads x
// elements x window (Vaswani 2017), unless it is fused, and reads its inputs and writes its output alone. Rows that
// an embedding picks are traffic. Beside it a pass moves weights once for a batch: forward_weights() and
// backward_weights(). The bias of attention's scores is one for all samples: its weights move, and nothing else;
// the FLOPs of the small network that may make it, once for a batch, are left out. Experts do what their tokens
// take, as if these were shared out evenly, and a batch moves the weights of all of them.
//
// Stored: a tensor that several layers keep is in memory once. ReLU works in place, flatten and other views store
// nothing, and SiLU in front of a product is computed anew, as fused kernels of gated layers do.
// Kept for backward: the input of convolution, fully connected, linear, batch norm, layer norm, GELU, a learned
// scale, embedding, LRN (which keeps its scale too) and the loss; both inputs of a product; the input of routing,
// of experts and of what combines them, and the scores of all experts; the output of ReLU (in place) and tanh; one
// element for each output of max pooling (its index) and of dropout (its mask). Attention keeps its inputs, the
// softmax, and with dropout its mask and output; fused, a number of each element and head in place of the softmax.
// Others keep nothing.
//
// A tied linear layer has no parameter of its own but its bias: the weight is the table of its
// embedding, which counts there. The gradient is complete once both layers have been backward, that
// is at the embedding, which comes earlier in the network.
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
      shape;  // (out, in / groups, kernel h, kernel w), (out, in), (entries, features) or (channels)
  std::int64_t elements = 0;
};

struct LayerWork {
  std::string name;
  std::string kind;  // as in the YAML vocabulary: "convolution", "batch_norm", ...
  Shape output;      // of one sample
  std::vector<ParameterTensor> parameters;  // as declared: weight, then bias
  std::vector<int> inputs;  // layers whose output it reads for each sample, or network_input
  // Whether it is latent attention, whose last input's features are in the keys of all heads.
  bool shares_last_input = false;
  std::int64_t groups = 1;  // of a convolution
  // The heads of attention. Both numbers are equal unless several heads of queries share one of keys and values.
  std::int64_t heads = 0;
  std::int64_t key_value_heads = 0;
  // Where attention is fused: the width of a head (the mean of keys and values), and the FLOPs of a forward pass
  // in which each element attends to its whole window, to later elements, too; and whether that is all of them.
  std::int64_t head_features = 0;
  std::int64_t square_flops = 0;
  bool attends_to_all = false;
  // The experts of a layer that has some, and the ranks that they are shared out to.
  std::int64_t experts = 0;
  std::int64_t expert_ranks = 1;

  std::int64_t forward_flops = 0;
  std::int64_t data_gradient_flops = 0;  // 0 for layers that see only the network's input
  std::int64_t weight_gradient_flops = 0;

  // Activation elements read and written, each tensor once a pass (a fused kernel's traffic).
  std::int64_t forward_read = 0;
  std::int64_t forward_written = 0;
  std::int64_t backward_read = 0;
  std::int64_t backward_written = 0;
  // The part of forward_written that nobody reads after the pass. It takes time, and is not kept.
  std::int64_t forward_passing = 0;
  // Activation elements that forward must keep for backward.
  std::int64_t kept = 0;
  // The elements of its output, and of what it computes beside it (a mask, a softmax), that stay in memory until
  // a backward pass reads them. A tensor that several layers read is counted once, where it is written.
  std::int64_t stored = 0;
  bool leaves_block = false;  // whether a layer in another block reads its output
  // Weight elements that are parameters of another layer (tied).
  std::int64_t tied_elements = 0;
  // Whether forward reads only some rows of the parameters, which forward_read has.
  bool picks_rows = false;
  bool reads_tokens = false;  // an embedding of tokens, and not of positions or segments

  [[nodiscard]] std::int64_t parameter_elements() const;
  // Weight elements that a pass moves, once for a batch of any size: forward reads the weights;
  // backward reads them and writes their gradients. An embedding's backward pass writes a dense
  // gradient and reads no weights.
  [[nodiscard]] std::int64_t forward_weights() const {
    return (picks_rows ? 0 : parameter_elements()) + tied_elements;
  }
  [[nodiscard]] std::int64_t backward_weights() const {
    return (picks_rows ? 1 : 2) * parameter_elements() + 2 * tied_elements;
  }
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
  int chunk = 0;  // of a pipeline, in which the layer is
  // The number of neighbours of a data-parallel group that have different experts. Every `parts`-th rank sums an
  // expert's gradient.
  int parts = 1;

  // Whether one bucket may have both.
  [[nodiscard]] bool travels_with(const Gradient& other) const {
    return chunk == other.chunk && parts == other.parts;
  }
};

// The block that a layer or a gradient is part of: its name up to the first of its parts, by dots, that ends
// in a digit; "h3" of "h3.attn.qkv". Empty where there is none, as of embeddings and heads.
[[nodiscard]] std::string_view block_of(std::string_view name);

struct NetworkWork {
  std::string name;
  std::vector<LayerWork> layers;  // forward (topological) order
  std::vector<Gradient> gradients;
  std::int64_t input_elements = 0;  // of one sample
  std::int64_t sequence = 0;        // elements of one sample's sequence; 0 where it has none
  // FP32 values that the optimizer of such networks keeps for each parameter: 1 of momentum SGD, 2 of Adam and
  // LAMB, by which networks with attention are trained.
  int optimizer_states = 1;

  // Whether it is a transformer whose attention is fused.
  [[nodiscard]] bool fuses_attention() const;
  [[nodiscard]] std::int64_t parameters() const;
  [[nodiscard]] std::int64_t forward_flops() const;
  [[nodiscard]] std::int64_t backward_flops() const;
  [[nodiscard]] std::int64_t kept() const;
};

// The work of a network with fused attention for samples of another length: all counts of a sample go with the
// length, and the FLOPs of attention over whole sequences with its square.
[[nodiscard]] NetworkWork scaled_to(NetworkWork network, std::int64_t sequence);

// Throws InputError that names the layer if shapes do not fit together (shape_inference.h), or if
// the forward FLOPs of the network exceed 2^60, so that no total overflows. O(layers).
[[nodiscard]] NetworkWork work(const Network& network);

}  // namespace paceline::models

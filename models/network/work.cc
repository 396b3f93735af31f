// Tests: tests/models/network_work_test.cc, tests/models/network_test.cc, tests/models/zoo_test.cc.
#include "models/network/work.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/network/shape_inference.h"

namespace paceline::models {
namespace {

constexpr int states_with_attention = 2;
constexpr std::int64_t most_elements = std::int64_t{1} << 40;
constexpr std::int64_t most_work = std::int64_t{1} << 53;  // all counts up to it are exact doubles
// All layers together may have more, and still no sum overflows. Long sequences need it: a network of 8 billion parameters
// takes 2^54 FLOPs for 262,144 tokens.
constexpr std::int64_t most_work_of_network = std::int64_t{1} << 60;

// A product that must stay exact in a double and far from overflow.
std::int64_t product(const std::string& layer, std::initializer_list<std::int64_t> factors) {
  std::int64_t result = 1;
  for (const std::int64_t factor : factors) {
    if (factor != 0 && result > most_work / factor) {
      throw InputError(fmt::format("layer '{}': its work is beyond 2^53", layer),
                       "use smaller sizes");
    }
    result *= factor;
  }
  return result;
}

// Fills in what a layer does. `in` is the first input; `all_in` the elements of all inputs.
struct Counting {
  const Network& network;
  const Layer& layer;
  LayerWork& work;
  const Shape& in;
  std::int64_t all_in;
  const Shape& out;
  bool needs_data_gradient;

  void operator()(const Convolution& c) const {
    const std::int64_t per_group = in.channels / c.groups;
    work.groups = c.groups;
    add_parameter("weight", {c.channels, per_group, c.kernel.height, c.kernel.width});
    if (c.bias) add_parameter("bias", {c.channels});
    matrix(product(work.name, {2, out.elements(), per_group, c.kernel.height, c.kernel.width}));
  }
  void operator()(const FullyConnected& f) const {
    add_parameter("weight", {f.outputs, in.elements()});
    if (f.bias) add_parameter("bias", {f.outputs});
    matrix(product(work.name, {2, in.elements(), f.outputs}));
  }
  // Statistics and normalisation read the input twice; backward reads input and gradient twice.
  void operator()(const BatchNorm&) const {
    add_parameter("weight", {in.channels});
    add_parameter("bias", {in.channels});
    traffic(2 * in.elements(), out.elements(), 4 * in.elements(), in.elements());
    work.kept = in.elements();
  }
  // ReLU works in place, and its backward pass reads the output.
  void operator()(const Relu&) const {
    traffic(in.elements(), out.elements(), 2 * in.elements(), in.elements());
    work.kept = out.elements();
  }
  // The index of each maximum is kept, one element each.
  void operator()(const MaxPool&) const {
    traffic(in.elements(), 2 * out.elements(), 2 * out.elements(), in.elements());
    work.kept = out.elements();
  }
  void operator()(const AveragePool&) const {
    traffic(in.elements(), out.elements(), out.elements(), in.elements());
  }
  void operator()(const AdaptiveAveragePool&) const {
    traffic(in.elements(), out.elements(), out.elements(), in.elements());
  }
  // LRN keeps its input and its scale.
  void operator()(const Lrn&) const {
    traffic(in.elements(), 2 * out.elements(), 4 * in.elements(), in.elements());
    work.kept = 2 * in.elements();
  }
  // The mask is counted as one element for each.
  void operator()(const Dropout&) const {
    traffic(in.elements(), 2 * out.elements(), 2 * in.elements(), in.elements());
    work.kept = out.elements();
  }
  // One number for each sample says whether it is kept.
  void operator()(const StochasticDepth&) const {
    traffic(in.elements(), out.elements(), out.elements(), in.elements());
  }
  // The gradient of each input is that of the output times the other.
  void operator()(const Multiply&) const {
    traffic(all_in, out.elements(), out.elements() + all_in, all_in);
    work.kept = all_in;
  }
  // The gradient of what is learned is that of the output times the input.
  void operator()(const Scale& s) const {
    if (s.learned) add_tensor(work.name, "scale", {in.channels});
    traffic(in.elements(), out.elements(), (s.learned ? 2 : 1) * in.elements(), in.elements());
    work.kept = s.learned ? in.elements() : 0;
  }
  void operator()(const Rearrange& r) const {
    if (!r.view) traffic(in.elements(), out.elements(), out.elements(), in.elements());
  }
  void operator()(const Slice&) const { traffic(0, 0, out.elements(), out.elements()); }
  void operator()(const Pad&) const {
    traffic(in.elements(), out.elements(), in.elements(), in.elements());
  }
  void operator()(const ClassToken&) const {
    add_tensor(work.name, "token", {in.channels});
    traffic(in.elements(), out.elements(), out.elements(), in.elements());
  }
  // It is the same for all samples: a batch costs its parameters, and a sample nothing.
  void operator()(const RelativePositionBias& b) const {
    if (b.hidden == 0) {
      add_tensor(work.name, "table", {b.entries, b.heads});
      return;
    }
    add_parameter("0.weight", {b.hidden, 2});
    add_parameter("0.bias", {b.hidden});
    add_parameter("2.weight", {b.heads, b.hidden});
  }
  // Its gradient is the gradient of each input: nothing to move.
  void operator()(const Add&) const { traffic(all_in, out.elements(), 0, 0); }
  void operator()(const Concat&) const { traffic(all_in, out.elements(), out.elements(), all_in); }
  // A flatten is a view.
  void operator()(const Flatten&) const {}
  void operator()(const SoftmaxCrossEntropy&) const {
    traffic(in.elements(), in.elements(), in.elements(), in.elements());
    work.kept = in.elements();
  }

  // The gradient of each picked row is added to that of its table.
  void operator()(const Embedding& e) const {
    add_tensor(work.name, "table", {e.entries, e.features});
    const std::int64_t numbers = e.of == Embedding::Of::positions ? 0 : in.elements();
    work.picks_rows = true;
    work.reads_tokens = e.of == Embedding::Of::tokens;
    traffic(numbers + out.elements(), out.elements(), numbers + out.elements(), out.elements());
    work.kept = numbers;
  }
  void operator()(const Linear& l) const {
    add_parameter("weight", {l.outputs, in.channels});
    if (l.bias) add_parameter("bias", {l.outputs});
    matrix(product(work.name, {2, in.elements(), l.outputs}));
  }
  void operator()(const TiedLinear& l) const {
    const auto& table = std::get<Embedding>(network.layers()[to_size(layer.inputs[1])].kind);
    if (l.bias) add_parameter("bias", {table.entries});
    work.tied_elements = product(work.name, {table.entries, table.features});
    matrix(product(work.name, {2, in.elements(), table.entries}));
  }
  // Its statistics are of one element of the sequence, so that one pass over the input will do.
  void operator()(const LayerNorm& n) const {
    add_parameter("weight", {in.channels});
    if (n.bias) add_parameter("bias", {in.channels});
    traffic(in.elements(), out.elements(), 2 * in.elements(), in.elements());
    work.kept = in.elements();
  }
  void operator()(const Gelu&) const { activate(); }
  void operator()(const Silu&) const { activate(); }
  void operator()(const Tanh&) const {
    traffic(in.elements(), out.elements(), 2 * in.elements(), in.elements());
    work.kept = out.elements();
  }
  // Forward: scores from queries and keys, softmax, dropout, and the sum of values. Backward: the
  // gradients of the weights and values, through dropout and softmax, to queries and keys.
  void operator()(const Attention& a) const {
    work.heads = a.heads;
    work.key_value_heads = a.key_value_heads == 0 ? a.heads : a.key_value_heads;
    if (a.head_norms) {
      const std::int64_t of_head = out.channels / a.heads;
      add_parameter("q_norm", {of_head});
      add_parameter("k_norm", {of_head});
    }
    if (a.fused) return fused(a);
    const std::int64_t window = a.window == 0 ? out.height : a.window;
    const std::int64_t square = product(work.name, {a.heads, out.height, window});
    const std::int64_t flops = product(work.name, {4, out.height, window, out.channels});
    if (a.learned_scale) add_parameter("logit_scale", {a.heads});
    work.forward_flops = flops;
    work.data_gradient_flops = needs_data_gradient ? 2 * flops : 0;
    const std::int64_t dropped = a.dropout > 0 ? square : 0;
    traffic(all_in + 2 * square + dropped, 2 * square + 2 * dropped + out.elements(),
            out.elements() + all_in + 4 * square + 2 * dropped, all_in + 2 * square + dropped);
    work.forward_passing = square;  // the scores: backward reads their softmax
    work.kept = all_in + square + 2 * dropped;
  }
  // It writes a score of each expert in FP32, and a copy of each element for each of its experts.
  void operator()(const RouteTokens& r) const {
    work.experts = r.experts;
    add_parameter("weight", {r.experts, in.channels});
    if (r.bias) add_parameter("bias", {r.experts});
    matrix(product(work.name, {2, in.elements(), r.experts}));
    const std::int64_t scores = product(work.name, {2, r.experts, in.height});
    work.forward_written = out.elements() + scores;
    work.backward_read = in.elements() + out.elements() + scores;
  }
  void operator()(const ExpertLinear& e) const {
    work.experts = e.experts;
    add_parameter("weight", {e.experts, e.outputs, in.channels});
    matrix(product(work.name, {2, in.elements(), e.outputs}));
  }
  void operator()(const CombineTokens&) const {
    traffic(in.elements(), out.elements(), out.elements() + in.elements(), in.elements());
    work.kept = in.elements();
  }
  // What is not picked gets a gradient of 0.
  void operator()(const SelectTokens&) const { pick(); }
  void operator()(const FirstToken&) const { pick(); }
  void operator()(const MeanToken&) const {
    traffic(in.elements(), out.elements(), out.elements(), in.elements());
  }

 private:
  // The backward pass reads the input.
  void activate() const {
    traffic(in.elements(), out.elements(), 2 * in.elements(), in.elements());
    work.kept = in.elements();
  }
  void pick() const { traffic(out.elements(), out.elements(), out.elements(), in.elements()); }
  void add_parameter(const char* what, std::vector<std::int64_t> shape) const {
    add_tensor(work.name + "." + what, what, std::move(shape));
  }
  void add_tensor(std::string name, const char* what, std::vector<std::int64_t> shape) const {
    std::int64_t elements = 1;
    for (const std::int64_t size : shape) elements = product(work.name, {elements, size});
    if (elements > most_elements)
      throw InputError(
          fmt::format("layer '{}': its {} has more than 2^40 elements", work.name, what),
          "use smaller sizes");
    work.parameters.push_back({std::move(name), std::move(shape), elements});
  }
  // The backward pass computes the scores anew: five products, where forward has two (Dao 2022, 3.1).
  // It keeps one number of the softmax for each element and head.
  void fused(const Attention& a) const {
    const std::int64_t window =
        a.sliding_window == 0 ? out.height : std::min(a.sliding_window, out.height);
    // Twice the number of pairs of an element and one that it attends to, so that half of a causal square is
    // a whole number.
    const std::int64_t pairs = a.causal ? product(work.name, {window, 2 * out.height - window})
                                        : product(work.name, {2, window, out.height});
    // These are the features of all heads. Scores cost as many products as keys have features, and sums as values.
    const std::int64_t values = out.channels;
    const std::int64_t keys = a.value_features > 0 ? in.channels : values;
    work.head_features = (keys + values) / (2 * a.heads);
    work.shares_last_input = a.value_features > 0;
    work.attends_to_all = window == out.height;
    work.square_flops = product(work.name, {2, out.height, window, keys + values});
    work.forward_flops = product(work.name, {pairs, keys + values});
    work.data_gradient_flops =
        needs_data_gradient ? product(work.name, {pairs, 3 * keys + 2 * values}) : 0;
    // The shared features are copied to the keys of each head.
    const std::int64_t copied =
        a.value_features > 0 ? out.height * (keys + values) - (all_in - in.elements()) : 0;
    const std::int64_t softmax = product(work.name, {a.heads, out.height});
    traffic(all_in, out.elements() + softmax + copied, all_in + 2 * out.elements() + softmax,
            all_in);
    work.kept = all_in + softmax + copied;
  }
  // A matrix product, and its two gradients: of the input and of the weights.
  void matrix(std::int64_t flops) const {
    work.forward_flops = flops;
    work.weight_gradient_flops = flops;
    work.data_gradient_flops = needs_data_gradient ? flops : 0;
    traffic(in.elements(), out.elements(),
            in.elements() + (needs_data_gradient ? 2 : 1) * out.elements(),
            needs_data_gradient ? in.elements() : 0);
    work.kept = in.elements();
  }
  void traffic(std::int64_t forward_read, std::int64_t forward_written, std::int64_t backward_read,
               std::int64_t backward_written) const {
    work.forward_read = forward_read;
    work.forward_written = forward_written;
    work.backward_read = backward_read;
    work.backward_written = backward_written;
  }
};

// How many of a layer's inputs, from the first on, are read for each sample. A tied layer reads the
// table of its second input, and not that layer's output; the bias of attention's scores is one for
// all samples.
std::size_t inputs_of_samples(const Layer& layer) {
  if (std::holds_alternative<TiedLinear>(layer.kind)) return 1;
  const bool has_bias =
      std::holds_alternative<Attention>(layer.kind) && layer.inputs.size() % 2 == 0;
  return layer.inputs.size() - (has_bias ? 1 : 0);
}

// Whether the output is the input's memory.
bool is_view(const LayerKind& kind) {
  const auto* rearranged = std::get_if<Rearrange>(&kind);
  return std::holds_alternative<Flatten>(kind) || std::holds_alternative<Slice>(kind) ||
         (rearranged != nullptr && rearranged->view);
}

// Whether the backward pass of a layer of this kind reads what it read.
bool keeps_inputs(const LayerKind& kind) {
  const auto is_any = [&]<class... Kinds>(std::variant<Kinds...>*) {
    return (std::holds_alternative<Kinds>(kind) || ...);
  };
  const auto* scale = std::get_if<Scale>(&kind);
  using Keeping = std::variant<Convolution, FullyConnected, BatchNorm, Lrn, Multiply, Linear,
                               TiedLinear, LayerNorm, Gelu, Silu, Attention, SoftmaxCrossEntropy,
                               RouteTokens, ExpertLinear, CombineTokens>;
  return is_any(static_cast<Keeping*>(nullptr)) || (scale != nullptr && scale->learned);
}

// Fills in what each layer stores, and whether other blocks read its output.
void add_stored(const Network& network, std::vector<LayerWork>& layers) {
  const auto kind_of = [&](std::size_t layer) -> const LayerKind& {
    return network.layers()[layer].kind;
  };
  std::vector<bool> is_stored(layers.size(), false);
  const auto store = [&](int layer, bool in_product) {
    while (layer != network_input && is_view(kind_of(to_size(layer))))
      layer = network.layers()[to_size(layer)].inputs.front();
    if (layer == network_input) return;
    const bool is_computed_anew =
        in_product && std::holds_alternative<Silu>(kind_of(to_size(layer)));
    if (!is_computed_anew) is_stored[to_size(layer)] = true;
  };
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = network.layers()[i];
    if (std::holds_alternative<Relu>(layer.kind) || std::holds_alternative<Tanh>(layer.kind))
      is_stored[i] = true;
    for (const int input : std::span(layer.inputs).first(inputs_of_samples(layer))) {
      if (keeps_inputs(layer.kind)) store(input, std::holds_alternative<Multiply>(layer.kind));
      if (input != network_input &&
          block_of(layers[to_size(input)].name) != block_of(layers[i].name))
        layers[to_size(input)].leaves_block = true;
    }
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    LayerWork& layer = layers[i];
    const bool is_loss = std::holds_alternative<SoftmaxCrossEntropy>(kind_of(i));
    const std::int64_t aside =
        is_loss ? layer.forward_written
                : std::max<std::int64_t>(
                      0, layer.forward_written - layer.forward_passing - layer.output.elements());
    layer.stored = aside + (is_stored[i] ? layer.output.elements() : 0);
  }
}

template <class F>
std::int64_t sum_over(const std::vector<LayerWork>& layers, F count) {
  std::int64_t sum = 0;
  for (const LayerWork& layer : layers) sum += count(layer);
  return sum;
}

}  // namespace

std::string_view block_of(std::string_view name) {
  for (std::size_t end = 1; end <= name.size(); ++end) {
    const bool ends_part = end == name.size() || name[end] == '.';
    if (ends_part && name[end - 1] >= '0' && name[end - 1] <= '9') return name.substr(0, end);
  }
  return {};
}

std::int64_t LayerWork::parameter_elements() const {
  std::int64_t sum = 0;
  for (const ParameterTensor& tensor : parameters) sum += tensor.elements;
  return sum;
}

bool NetworkWork::fuses_attention() const {
  return std::ranges::any_of(layers, [](const LayerWork& l) { return l.head_features > 0; });
}
std::int64_t NetworkWork::parameters() const {
  return sum_over(layers, [](const LayerWork& l) { return l.parameter_elements(); });
}
std::int64_t NetworkWork::forward_flops() const {
  return sum_over(layers, [](const LayerWork& l) { return l.forward_flops; });
}
std::int64_t NetworkWork::backward_flops() const {
  return sum_over(layers, [](const LayerWork& l) { return l.backward_flops(); });
}
std::int64_t NetworkWork::kept() const {
  return sum_over(layers, [](const LayerWork& l) { return l.kept; });
}

NetworkWork scaled_to(NetworkWork network, std::int64_t sequence) {
  const double ratio = static_cast<double>(sequence) / static_cast<double>(network.sequence);
  const auto scale = [](std::int64_t& count, double factor) {
    count = std::llround(static_cast<double>(count) * factor);
  };
  // With a window, each element attends to as many others, whatever the length.
  for (LayerWork& layer : network.layers) {
    for (std::int64_t* flops : {&layer.forward_flops, &layer.data_gradient_flops,
                                &layer.weight_gradient_flops, &layer.square_flops})
      scale(*flops, layer.attends_to_all ? ratio * ratio : ratio);
    for (std::int64_t* count :
         {&layer.forward_read, &layer.forward_written, &layer.forward_passing, &layer.backward_read,
          &layer.backward_written, &layer.kept, &layer.stored, &layer.output.height})
      scale(*count, ratio);
  }
  scale(network.input_elements, ratio);
  network.sequence = sequence;
  return network;
}

NetworkWork work(const Network& network) {
  const std::vector<Shape> shapes = infer_shapes(network);
  NetworkWork result;
  result.name = network.name();
  result.input_elements = network.input().elements();
  result.sequence = network.input().is_sequence ? network.input().height : 0;
  result.layers.reserve(network.layers().size());
  std::int64_t flops = 0;
  for (std::size_t i = 0; i < network.layers().size(); ++i) {
    const Layer& layer = network.layers()[i];
    const auto shape_of = [&](int input) -> const Shape& {
      return input == network_input ? network.input() : shapes[to_size(input)];
    };
    std::int64_t all_in = 0;
    bool only_network_input = true;
    LayerWork entry;
    for (const int input : std::span(layer.inputs).first(inputs_of_samples(layer))) {
      entry.inputs.push_back(input);
      all_in += shape_of(input).elements();
      if (all_in > most_work) {
        throw InputError(
            fmt::format("layer '{}': its inputs have more than 2^53 elements", layer.name),
            "use smaller sizes");
      }
      only_network_input = only_network_input && input == network_input;
    }
    entry.name = layer.name;
    entry.kind = name(layer.kind);
    entry.output = shapes[i];
    std::visit(Counting{network, layer, entry, shape_of(layer.inputs.front()), all_in, shapes[i],
                        !only_network_input},
               layer.kind);
    if (std::holds_alternative<Attention>(layer.kind))
      result.optimizer_states = states_with_attention;
    flops += entry.forward_flops;
    if (flops > most_work_of_network) {
      throw InputError(
          fmt::format("layer '{}': the work up to this layer is beyond 2^60", layer.name),
          "use smaller sizes");
    }
    result.layers.push_back(std::move(entry));
  }
  add_stored(network, result.layers);
  for (std::size_t i = result.layers.size(); i-- > 0;) {
    const auto& parameters = result.layers[i].parameters;
    for (auto tensor = parameters.rbegin(); tensor != parameters.rend(); ++tensor) {
      result.gradients.push_back({tensor->name, tensor->elements, static_cast<int>(i)});
    }
  }
  return result;
}

}  // namespace paceline::models

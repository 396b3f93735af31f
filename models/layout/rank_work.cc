// Tests: tests/models/layout_test.cc.
#include "models/layout/rank_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/layout/layer_placement.h"

namespace paceline::models {
namespace {

std::int64_t share(std::int64_t count, std::int64_t parts) {
  return (count + parts - 1) / parts;
}

std::optional<Collective> change(Activation from, Activation to) {
  if (from == to) return std::nullopt;
  return collective_between(from.placement, to.placement);
}

class Splitter {
 public:
  Splitter(const NetworkWork& whole, const Layout& layout)
      : whole_(whole),
        layout_(layout),
        between_(layout.sequence_parallel ? by_elements : replicated),
        rank_{whole, std::vector<std::vector<Exchange>>(whole.layers.size())} {}

  RankWork split() {
    if (layout_.tensor > 1) split_tensors();
    if (layout_.context > 1) split_context();
    if (layout_.expert_ranks() > 1) split_experts();
    for (Gradient& gradient : rank_.network.gradients) take_share(gradient);
    if (layout_.expert_parts() > 1)
      for (Gradient& gradient : rank_.network.gradients)
        if (rank_.network.layers[to_size(gradient.layer)].expert_ranks > 1)
          gradient.parts = layout_.expert_parts();
    return std::move(rank_);
  }

 private:
  // A gradient shrinks as its tensor does. --scale-gradients may have made it smaller before.
  void take_share(Gradient& gradient) const {
    const auto layer = to_size(gradient.layer);
    const std::vector<ParameterTensor>& tensors = rank_.network.layers[layer].parameters;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].name == gradient.name)
        gradient.elements = std::max<std::int64_t>(
            1, std::llround(static_cast<double>(gradient.elements) *
                            static_cast<double>(tensors[i].elements) /
                            static_cast<double>(whole_.layers[layer].parameters[i].elements)));
  }

  void split_tensors() {
    check_heads();
    check_experts();
    places_ = layer_placements(whole_, between_);
    for (std::size_t i = 0; i < whole_.layers.size(); ++i) take_share(i);
    for (std::size_t i = 0; i < whole_.layers.size(); ++i) add_exchange(i);
  }

  void check_heads() const {
    const std::int64_t t = layout_.tensor;
    bool has_heads = false;
    for (const LayerWork& layer : whole_.layers) {
      if (layer.heads == 0) continue;
      has_heads = true;
      const std::int64_t shared = std::min(layer.key_value_heads, t);
      if (layer.heads % t != 0 || std::max(layer.key_value_heads, t) % shared != 0)
        throw InputError(
            {"--tensor"},
            fmt::format("{} parts of the {} heads ({} of keys and values) of layer '{}'", t,
                        layer.heads, layer.key_value_heads, layer.name),
            "choose a divisor of the heads");
    }
    if (!has_heads)
      throw InputError({"--tensor"}, fmt::format("{} has no attention", whole_.name),
                       "give a language model as --model, or leave it out");
  }

  void check_experts() const {
    for (const LayerWork& layer : whole_.layers)
      if (layer.experts > 0 && !layout_.sequence_parallel)
        throw InputError({"--no-sequence-parallel"},
                         fmt::format("the tokens of experts in layer '{}' are split over the ranks "
                                     "of --tensor",
                                     layer.name),
                         "leave it out");
  }

  // The features of a linear layer's output that a rank computes. Where there are fewer heads of keys and values
  // than ranks, several ranks compute the same ones.
  std::int64_t outputs_of_rank(std::size_t layer, std::int64_t outputs) const {
    const std::int64_t t = layout_.tensor;
    const LayerWork* const attention = attention_of_joint_heads(whole_, layer);
    if (attention == nullptr) return share(outputs, t);
    const std::int64_t all = attention->heads + 2 * attention->key_value_heads;
    const std::int64_t own = attention->heads / t + 2 * share(attention->key_value_heads, t);
    return outputs / all * own;
  }

  void take_share(std::size_t index) {
    const std::int64_t t = layout_.tensor;
    const LayerPlacement& place = places_[index];
    LayerWork& layer = rank_.network.layers[index];
    const std::int64_t in = place.takes.is_split() ? t : 1;
    const std::int64_t out = place.leaves.is_split() ? t : 1;
    const bool has_products = place.weights != WeightSplit::on_all && layer.forward_flops > 0;
    if (place.leaves == by_features)
      layer.output.channels = place.weights == WeightSplit::by_outputs
                                  ? outputs_of_rank(index, layer.output.channels)
                                  : share(layer.output.channels, t);
    else if (place.leaves == by_elements)
      layer.output.height = share(layer.output.height, t);
    for (ParameterTensor& tensor : layer.parameters) {
      if (place.weights == WeightSplit::on_all) continue;
      std::size_t side = 0;
      if (place.weights == WeightSplit::by_inputs)
        side = tensor.shape.size() > 1 ? 1 : tensor.shape.size();
      if (side == tensor.shape.size()) continue;  // a bias of what is summed is on each rank
      const std::int64_t before = tensor.shape[side];
      tensor.shape[side] = place.weights == WeightSplit::by_outputs ? outputs_of_rank(index, before)
                                                                    : share(before, t);
      tensor.elements = tensor.elements / before * tensor.shape[side];
    }
    layer.tied_elements = share(layer.tied_elements, t);
    layer.heads = share(layer.heads, t);
    layer.key_value_heads = share(layer.key_value_heads, t);
    for (std::int64_t* flops : {&layer.forward_flops, &layer.data_gradient_flops,
                                &layer.weight_gradient_flops, &layer.square_flops})
      *flops = share(*flops, t);
    if (has_products) {
      const std::int64_t read = share(layer.forward_read, in);
      const std::int64_t written = share(layer.forward_written, out);
      layer.backward_read = read + 2 * written;
      layer.backward_written = share(layer.backward_written, in);
      layer.forward_read = read;
      layer.forward_written = written;
    } else {
      for (std::int64_t* moved :
           {&layer.forward_read, &layer.forward_written, &layer.forward_passing,
            &layer.backward_read, &layer.backward_written})
        *moved = share(*moved, std::max(in, out));
    }
    layer.kept = share(layer.kept, in);
    // A partial sum is stored as what is made of it.
    const Activation stored = place.leaves == partial ? between_ : place.leaves;
    layer.stored = share(layer.stored, stored.is_split() ? t : 1);
  }

  void add_exchange(std::size_t index) {
    const LayerWork& layer = whole_.layers[index];
    const LayerPlacement& place = places_[index];
    std::vector<Exchange>& exchanges = rank_.exchanges[index];
    if (layer.kind == "softmax_cross_entropy" && place.takes == by_features) {
      // The largest logit, that of the target, and the sum of all, of each element and in FP32.
      constexpr int sums = 3;
      constexpr std::int64_t of_two_bytes = 2;
      const LayerWork& logits = whole_.layers[to_size(layer.inputs.front())];
      exchanges.push_back({.elements = of_two_bytes * logits.output.height,
                           .times = sums,
                           .forward = Collective::all_reduce});
      return;
    }
    std::vector<Activation> wanted;
    for (std::size_t r = index + 1; r < whole_.layers.size(); ++r) {
      if (std::ranges::count(whole_.layers[r].inputs, static_cast<int>(index)) == 0) continue;
      const LayerPlacement& reader = places_[r];
      const auto known = std::ranges::find(wanted, reader.takes);
      const auto at = static_cast<std::size_t>(known - wanted.begin());
      if (known == wanted.end()) {
        wanted.push_back(reader.takes);
        Exchange exchange{.elements = layer.output.elements()};
        exchange.forward = change(place.leaves, reader.takes);
        exchange.backward = change(gradient_left(reader), gradient_taken(place));
        exchange.again =
            exchange.forward == Collective::all_gather && reader.weights == WeightSplit::by_outputs;
        exchanges.push_back(exchange);
      }
      if (reader.weights != WeightSplit::on_all)
        exchanges[at].readers.push_back(static_cast<int>(r));
    }
    std::erase_if(exchanges, [](const Exchange& e) { return !e.forward && !e.backward; });
  }

  void split_context() {
    const std::int64_t c = layout_.context;
    for (std::size_t i = 0; i < rank_.network.layers.size(); ++i) {
      LayerWork& layer = rank_.network.layers[i];
      if (!layer.output.is_sequence && layer.kind != "softmax_cross_entropy")
        throw InputError({"--context"}, fmt::format("layer '{}' reads no sequence", layer.name),
                         "give a language model as --model, or leave it out");
      layer.output.height = share(layer.output.height, c);
      for (std::int64_t* count :
           {&layer.forward_flops, &layer.data_gradient_flops, &layer.weight_gradient_flops,
            &layer.square_flops, &layer.forward_read, &layer.forward_written,
            &layer.forward_passing, &layer.backward_read, &layer.backward_written, &layer.kept,
            &layer.stored})
        *count = share(*count, c);
      for (Exchange& exchange : rank_.exchanges[i]) exchange.elements = share(exchange.elements, c);
      if (layer.heads == 0) continue;
      // Keys and values of the rank's heads, at the layer that attention reads.
      const std::int64_t width =
          layer.head_features > 0 ? layer.head_features : layer.output.channels / layer.heads;
      const std::int64_t sequence = whole_.layers[i].output.height;
      rank_.exchanges[to_size(layer.inputs.back())].push_back(
          {.axis = Exchange::Axis::context,
           .elements = 2 * layer.key_value_heads * width * sequence,
           .forward = Collective::all_gather,
           .backward = Collective::reduce_scatter,
           .again = true,
           .readers = {static_cast<int>(i)}});
    }
  }

  void split_experts() {
    const std::int64_t e = layout_.expert_ranks();
    bool has_experts = false;
    int copies = 1;
    for (std::size_t i = 0; i < rank_.network.layers.size(); ++i) {
      LayerWork& layer = rank_.network.layers[i];
      if (layer.experts == 0) continue;
      has_experts = true;
      if (layer.experts % e != 0)
        throw InputError(
            {layout_.expert > layout_.tensor ? "--expert" : "--tensor"},
            fmt::format("{} ranks for the {} experts of layer '{}'", e, layer.experts, layer.name),
            "choose a divisor of the experts");
      layer.expert_ranks = e;
      if (layer.kind == "route_tokens") {
        copies = static_cast<int>(whole_.layers[i].output.height / height_of_input(i));
        add_all_to_all(i, copies);
        layer.expert_ranks = 1;
        continue;
      }
      ParameterTensor& weight = layer.parameters.front();
      weight.shape.front() /= e;
      weight.elements /= e;
    }
    if (!has_experts && layout_.expert > 1)
      throw InputError({"--expert"}, fmt::format("{} has no experts", whole_.name),
                       "leave it out, or give a mixture of experts as --model");
    for (const LayerWork& layer : rank_.network.layers)
      if (layer.kind == "combine_tokens") add_all_to_all(to_size(layer.inputs.front()), copies);
  }

  [[nodiscard]] std::int64_t height_of_input(std::size_t layer) const {
    const int input = whole_.layers[layer].inputs.front();
    return input == network_input ? whole_.sequence : whole_.layers[to_size(input)].output.height;
  }

  void add_all_to_all(std::size_t layer, int copies) {
    rank_.exchanges[layer].push_back({.axis = Exchange::Axis::expert,
                                      .elements = rank_.network.layers[layer].output.elements(),
                                      .copies = copies,
                                      .forward = Collective::all_to_all,
                                      .backward = Collective::all_to_all});
  }

  const NetworkWork& whole_;
  const Layout& layout_;
  Activation between_;
  RankWork rank_;
  std::vector<LayerPlacement> places_;
};

}  // namespace

RankWork rank_work(const NetworkWork& network, const Layout& layout) {
  return Splitter(network, layout).split();
}

}  // namespace paceline::models

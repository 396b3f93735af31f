// Tests: tests/models/tensor_part_test.cc.
#include "models/layout/tensor_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/layout/layout.h"
#include "models/layout/rank_work.h"

namespace paceline::models {
namespace {

class Cutter {
 public:
  Cutter(const Network& network, int ranks, int rank)
      : network_(network), work_(models::work(network)), ranks_(ranks), rank_(rank) {
    // It checks the heads.
    static_cast<void>(rank_work(work_, {.tensor = ranks, .sequence_parallel = false}));
    places_ = layer_placements(work_, replicated);
  }

  TensorPart cut() {
    NetworkBuilder builder(network_.name(), network_.input(), network_.stored_sample_bytes());
    const std::vector<Layer>& layers = network_.layers();
    for (std::size_t i = 0; i < layers.size(); ++i) {
      std::vector<std::string> inputs;
      for (const int input : layers[i].inputs)
        inputs.push_back(input == network_input ? "input" : layers[to_size(input)].name);
      builder.add(layers[i].name, part_of_layer(i), inputs);
    }
    TensorPart part{.ranks = ranks_,
                    .rank = rank_,
                    .network = builder.build(),
                    .cuts = {},
                    .sums_output = {},
                    .sums_gradient = {},
                    .splits_loss = places_.back().takes == by_features};
    for (std::size_t i = 0; i < layers.size(); ++i) {
      part.sums_output.push_back(places_[i].leaves == partial);
      part.sums_gradient.push_back(sums_gradient(i));
    }
    for (std::size_t i = layers.size(); i-- > 0;) {
      const std::vector<ParameterTensor>& tensors = work_.layers[i].parameters;
      for (std::size_t t = tensors.size(); t-- > 0;)
        part.cuts.push_back(cut_of(i, tensors[t].shape));
    }
    return part;
  }

 private:
  // The share of a size, in `what`.
  [[nodiscard]] std::int64_t share(std::size_t layer, std::int64_t size, const char* what) const {
    if (size % ranks_ == 0) return size / ranks_;
    throw InputError({"--tensor"},
                     fmt::format("{} ranks for the {} {} of layer '{}'", ranks_, size, what,
                                 work_.layers[layer].name),
                     fmt::format("choose a divisor of {}", size));
  }

  [[nodiscard]] LayerKind part_of_layer(std::size_t index) const {
    LayerKind kind = network_.layers()[index].kind;
    const WeightSplit split = places_[index].weights;
    if (auto* const embedding = std::get_if<Embedding>(&kind);
        embedding != nullptr && split == WeightSplit::by_entries)
      embedding->entries = share(index, embedding->entries, "entries");
    if (auto* const linear = std::get_if<Linear>(&kind);
        linear != nullptr && split == WeightSplit::by_outputs)
      linear->outputs = share(index, linear->outputs, "outputs");
    if (auto* const attention = std::get_if<Attention>(&kind)) {
      attention->heads = share(index, attention->heads, "heads");
      if (attention->key_value_heads > 0)
        attention->key_value_heads =
            share(index, attention->key_value_heads, "heads of keys and values");
    }
    return kind;
  }

  // A layer's readers have split weights, each of which gives a part of the gradient, or none of them has.
  [[nodiscard]] bool sums_gradient(std::size_t layer) const {
    bool any = false;
    bool all = true;
    for (std::size_t r = layer + 1; r < work_.layers.size(); ++r) {
      if (std::ranges::count(work_.layers[r].inputs, static_cast<int>(layer)) == 0) continue;
      const bool is_summed = gradient_left(places_[r]) == partial;
      any = any || is_summed;
      all = all && is_summed;
    }
    if (any && !all)
      throw InputError({"--tensor"},
                       fmt::format("layer '{}' is read by layers with whole and with split "
                                   "weights, which can be predicted, not run",
                                   work_.layers[layer].name),
                       "choose a network whose blocks norm what they read, such as GPT-2 or Llama");
    return any;
  }

  // The outputs of a layer that the rank has. Queries, keys and values that stand side by side are cut each.
  [[nodiscard]] std::vector<Elements> outputs_of_rank(std::size_t layer,
                                                      std::int64_t outputs) const {
    const LayerWork* const attention = attention_of_joint_heads(work_, layer);
    std::vector<std::int64_t> sizes = {outputs};
    if (attention != nullptr) {
      const std::int64_t width = outputs / (attention->heads + 2 * attention->key_value_heads);
      const std::int64_t shared = attention->key_value_heads * width;
      sizes = {attention->heads * width, shared, shared};
    }
    std::vector<Elements> spans;
    std::int64_t first = 0;
    for (const std::int64_t size : sizes) {
      const std::int64_t own = size / ranks_;
      spans.push_back({first + rank_ * own, own});
      first += size;
    }
    return spans;
  }

  [[nodiscard]] TensorCut cut_of(std::size_t layer, const std::vector<std::int64_t>& shape) const {
    const WeightSplit split = places_[layer].weights;
    const bool is_matrix = shape.size() > 1;
    const std::int64_t rows = shape.front();
    std::int64_t inner = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) inner *= shape[i];
    if (split == WeightSplit::on_all || (split == WeightSplit::by_inputs && !is_matrix))
      return {.stride = rows * inner, .spans = {{0, rows * inner}}};
    if (split == WeightSplit::by_inputs) {
      const std::int64_t own = share(layer, inner, "inputs");
      return {.repeats = rows, .stride = inner, .spans = {{rank_ * own, own}}, .is_split = true};
    }
    TensorCut cut{.stride = rows * inner, .spans = {}, .is_split = true};
    for (const Elements& span : outputs_of_rank(layer, rows))
      cut.spans.push_back({span.begin * inner, span.size * inner});
    return cut;
  }

  const Network& network_;
  NetworkWork work_;
  int ranks_;
  int rank_;
  std::vector<LayerPlacement> places_;
};

// Calls copy(in the whole array, in the part, elements) for each run of elements.
template <class Copy>
void for_each_run(const TensorPart& part, Copy copy) {
  std::int64_t whole = 0;
  std::int64_t own = 0;
  for (const TensorCut& cut : part.cuts)
    for (std::int64_t repeat = 0; repeat < cut.repeats; ++repeat, whole += cut.stride)
      for (const Elements& span : cut.spans) {
        copy(whole + span.begin, own, span.size);
        own += span.size;
      }
}

}  // namespace

TensorPart tensor_part(const Network& network, int ranks, int rank) {
  return Cutter(network, ranks, rank).cut();
}

std::vector<float> part_of(const TensorPart& part, std::span<const float> whole) {
  std::vector<float> values;
  for_each_run(part, [&](std::int64_t from, std::int64_t, std::int64_t size) {
    const std::span<const float> run = whole.subspan(to_size(from), to_size(size));
    values.insert(values.end(), run.begin(), run.end());
  });
  return values;
}

void put_part(const TensorPart& part, std::span<const float> values, std::span<float> whole) {
  for_each_run(part, [&](std::int64_t to, std::int64_t from, std::int64_t size) {
    std::ranges::copy(values.subspan(to_size(from), to_size(size)), whole.begin() + to);
  });
}

}  // namespace paceline::models

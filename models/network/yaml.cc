// Tests: tests/models/network_yaml_test.cc, tests/models/network_hostile_test.cc.
#include "models/network/yaml.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "models/base/limits.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/base/to_size.h"
#include "models/base/yaml_reader.h"
#include "models/network/shape_inference.h"
#include "models/network/work.h"

namespace paceline::models {
namespace {

constexpr std::size_t most_layers = 100'000;

std::int64_t size(const std::string& text) {
  return parse_count(text, 1, largest_size);
}
std::int64_t size_or_zero(const std::string& text) {
  return parse_count(text, 0, largest_size);
}

// The size of a stored sample; 0 says that it is unknown.
Bytes parse_stored_sample(const std::string& text) {
  const Bytes value = parse_bytes(text);
  if (value != Bytes{0} && !within_limits(value)) {
    throw InputError(fmt::format("{} is out of range", in_quotes(text)),
                     fmt::format("write {} to {}, or leave it out", to_text(Limits<Bytes>::least),
                                 to_text(Limits<Bytes>::most)));
  }
  return value;
}

// Reads "3" or "[3, 5]" (height, width).
Extent extent(const YamlMap& map, const std::string& key,
              std::int64_t (*parse)(const std::string&)) {
  const YAML::Node node = map.at(key);
  if (node.IsSequence()) {
    if (node.size() != 2) {
      throw InputError(place_of(node, map.file()),
                       fmt::format("{} has {} numbers", key, node.size()),
                       fmt::format("write {}: 3 or {}: [3, 5]", key, key));
    }
    return {YamlMap::parsed_scalar(node[0], map.file(), key, parse),
            YamlMap::parsed_scalar(node[1], map.file(), key, parse)};
  }
  return square(map.parsed(key, parse));
}

Extent extent_or(const YamlMap& map, const std::string& key,
                 std::int64_t (*parse)(const std::string&), Extent otherwise) {
  return map.has(key) ? extent(map, key, parse) : otherwise;
}

// Reads "[channels, height, width]", "[features]", or "{tokens: N, features: F}".
Shape read_shape(const YamlMap& owner, const std::string& key) {
  const YAML::Node node = owner.at(key);
  if (node.IsMap()) {
    const YamlMap map(node, owner.file(), "the " + key, {"tokens", "features"});
    return Shape::sequence(map.parsed("tokens", size),
                           map.has("features") ? map.parsed("features", size) : 1);
  }
  if (!node.IsSequence() || (node.size() != 3 && node.size() != 1))
    throw InputError(place_of(node, owner.file()), key + " is no shape",
                     fmt::format("write {0}: [channels, height, width], {0}: [features] or {0}: "
                                 "{{tokens: N}}",
                                 key));
  std::vector<std::int64_t> sizes;
  for (const YAML::Node& entry : node)
    sizes.push_back(YamlMap::parsed_scalar(entry, owner.file(), key, size));
  const Shape shape =
      sizes.size() == 3 ? Shape::image(sizes[0], sizes[1], sizes[2]) : Shape::vector(sizes[0]);
  if (static_cast<double>(sizes[0]) * static_cast<double>(shape.height) *
          static_cast<double>(shape.width) >
      1e12) {
    throw InputError(place_of(node, owner.file()),
                     fmt::format("the {} has more than 10^12 elements", key), "use smaller sizes");
  }
  return shape;
}

// The attributes that a kind takes besides name, kind, input and inputs.
std::vector<std::string> attributes(std::string_view kind) {
  if (kind == "convolution")
    return {"channels", "kernel", "stride", "padding", "dilation", "groups", "bias"};
  if (kind == "fully_connected") return {"outputs", "bias"};
  if (kind == "max_pool" || kind == "average_pool") return {"kernel", "stride", "padding", "ceil"};
  if (kind == "adaptive_average_pool") return {"output"};
  if (kind == "lrn") return {"size"};
  if (kind == "dropout") return {"probability"};
  if (kind == "embedding") return {"of", "entries", "features"};
  if (kind == "linear") return {"outputs", "bias"};
  if (kind == "tied_linear") return {"table", "bias"};
  if (kind == "layer_norm") return {"bias", "rms"};
  if (kind == "attention")
    return {"heads",         "key_value_heads", "causal",         "dropout",        "window",
            "learned_scale", "fused",           "sliding_window", "value_features", "head_norms",
            "rotary_base",   "rotary_features", "alibi"};
  if (kind == "route_tokens") return {"experts", "active", "bias"};
  if (kind == "expert_linear") return {"experts", "outputs"};
  if (kind == "combine_tokens") return {"active"};
  if (kind == "relative_position_bias") return {"entries", "heads", "window", "hidden"};
  if (kind == "stochastic_depth") return {"probability"};
  if (kind == "scale") return {"learned"};
  if (kind == "rearrange") return {"output", "view"};
  if (kind == "slice" || kind == "pad") return {"output"};
  if (kind == "select_tokens") return {"share"};
  return {};
}

Pool pool(const YamlMap& map) {
  const Extent kernel = extent(map, "kernel", size);
  return {.kernel = kernel,
          .stride = extent_or(map, "stride", size, kernel),
          .padding = extent_or(map, "padding", size_or_zero, {0, 0}),
          .ceil = map.flag_or("ceil", false)};
}

double probability(const std::string& text) {
  return parse_share(text, 0, 1);
}

double rotary_base(const std::string& text) {
  return parse_number(text, 0, largest_rotary_base);
}

Embedding::Of embedding_of(const std::string& text) {
  const auto found = std::find(embedding_names.begin(), embedding_names.end(), text);
  if (found == embedding_names.end())
    throw unknown_name("embedding", text, {embedding_names.begin(), embedding_names.end()});
  return static_cast<Embedding::Of>(found - embedding_names.begin());
}

// The kinds of networks that read a sequence; nothing for others.
std::optional<LayerKind> kind_of_sequences(const YamlMap& map, std::string_view kind) {
  if (kind == "embedding") {
    return Embedding{.of = map.has("of") ? map.parsed("of", embedding_of) : Embedding::Of::tokens,
                     .entries = map.parsed("entries", size),
                     .features = map.parsed("features", size)};
  }
  if (kind == "linear")
    return Linear{.outputs = map.parsed("outputs", size), .bias = map.flag_or("bias", true)};
  if (kind == "tied_linear") return TiedLinear{map.flag_or("bias", false)};
  if (kind == "layer_norm")
    return LayerNorm{.bias = map.flag_or("bias", true), .rms = map.flag_or("rms", false)};
  if (kind == "class_token") return ClassToken{};
  if (kind == "relative_position_bias") {
    return RelativePositionBias{
        .entries = map.parsed("entries", size),
        .heads = map.parsed("heads", size),
        .window = map.parsed("window", size),
        .hidden = map.has("hidden") ? map.parsed("hidden", size_or_zero) : 0};
  }
  if (kind == "gelu") return Gelu{};
  if (kind == "silu") return Silu{};
  if (kind == "rms_norm") return LayerNorm{.bias = false, .rms = true};
  if (kind == "tanh") return Tanh{};
  if (kind == "attention") {
    return Attention{
        .heads = map.parsed("heads", size),
        .key_value_heads = map.has("key_value_heads") ? map.parsed("key_value_heads", size) : 0,
        .causal = map.flag_or("causal", false),
        .dropout = map.has("dropout") ? map.parsed("dropout", probability) : 0,
        .window = map.has("window") ? map.parsed("window", size_or_zero) : 0,
        .learned_scale = map.flag_or("learned_scale", false),
        .fused = map.flag_or("fused", false),
        .sliding_window =
            map.has("sliding_window") ? map.parsed("sliding_window", size_or_zero) : 0,
        .value_features =
            map.has("value_features") ? map.parsed("value_features", size_or_zero) : 0,
        .head_norms = map.flag_or("head_norms", false),
        .rotary_base = map.has("rotary_base") ? map.parsed("rotary_base", rotary_base) : 0,
        .rotary_features =
            map.has("rotary_features") ? map.parsed("rotary_features", size_or_zero) : 0,
        .alibi = map.flag_or("alibi", false)};
  }
  if (kind == "route_tokens")
    return RouteTokens{.experts = map.parsed("experts", size),
                       .active = map.parsed("active", size),
                       .bias = map.flag_or("bias", false)};
  if (kind == "expert_linear")
    return ExpertLinear{.experts = map.parsed("experts", size),
                        .outputs = map.parsed("outputs", size)};
  if (kind == "combine_tokens") return CombineTokens{map.parsed("active", size)};
  if (kind == "select_tokens") {
    const auto share = [](const std::string& text) { return parse_share(text, 1e-6, 1); };
    return SelectTokens{map.parsed("share", share)};
  }
  if (kind == "first_token") return FirstToken{};
  if (kind == "mean_token") return MeanToken{};
  return std::nullopt;
}

// The kinds that move elements; nothing for others.
std::optional<LayerKind> kind_that_moves(const YamlMap& map, std::string_view kind) {
  const auto output = [&] { return read_shape(map, "output"); };
  if (kind == "rearrange") return Rearrange{output(), map.flag_or("view", false)};
  if (kind == "slice") return Slice{output()};
  if (kind == "pad") return Pad{output()};
  return std::nullopt;
}

LayerKind layer_kind(const YamlMap& map, std::string_view kind) {
  if (kind == "convolution") {
    return Convolution{.channels = map.parsed("channels", size),
                       .kernel = extent(map, "kernel", size),
                       .stride = extent_or(map, "stride", size, {1, 1}),
                       .padding = extent_or(map, "padding", size_or_zero, {0, 0}),
                       .dilation = extent_or(map, "dilation", size, {1, 1}),
                       .groups = map.has("groups") ? map.parsed("groups", size) : 1,
                       .bias = map.flag_or("bias", true)};
  }
  if (kind == "fully_connected") {
    return FullyConnected{.outputs = map.parsed("outputs", size),
                          .bias = map.flag_or("bias", true)};
  }
  if (kind == "batch_norm") return BatchNorm{};
  if (kind == "relu") return Relu{};
  if (kind == "max_pool") return MaxPool{pool(map)};
  if (kind == "average_pool") return AveragePool{pool(map)};
  if (kind == "adaptive_average_pool") return AdaptiveAveragePool{extent(map, "output", size)};
  if (kind == "lrn") return Lrn{map.has("size") ? map.parsed("size", size) : 5};
  if (kind == "dropout")
    return Dropout{map.has("probability") ? map.parsed("probability", probability) : 0.5};
  if (kind == "stochastic_depth") return StochasticDepth{map.parsed("probability", probability)};
  if (const auto of_sequences = kind_of_sequences(map, kind)) return *of_sequences;
  if (const auto moving = kind_that_moves(map, kind)) return *moving;
  if (kind == "multiply") return Multiply{};
  if (kind == "scale") return Scale{map.flag_or("learned", true)};
  if (kind == "add") return Add{};
  if (kind == "concat") return Concat{};
  if (kind == "flatten") return Flatten{};
  PACELINE_ASSERT(kind == "softmax_cross_entropy", "every kind has a parser");
  return SoftmaxCrossEntropy{};
}

// A layer as it stands in the file.
struct Entry {
  std::string name;
  LayerKind kind;
  std::vector<std::string> inputs;
  InputPlace place;
};

Entry read_layer(const YAML::Node& node, const std::string& file, const std::string& above) {
  std::vector<std::string> kinds(layer_kind_names.begin(), layer_kind_names.end());
  kinds.emplace_back("rms_norm");  // a layer_norm without bias
  if (!node.IsMap())
    throw InputError(place_of(node, file), "a layer is no mapping",
                     "write {name: conv1, kind: convolution, ...}");
  const YAML::Node kind_node = node["kind"];
  if (!kind_node.IsDefined())
    throw InputError(place_of(node, file), "a layer has no 'kind'",
                     "add kind: convolution, or another kind");
  const std::string kind = YamlMap::scalar(kind_node, file, "kind");
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
    const InputError error = unknown_name("kind of layer", kind, kinds);
    throw InputError(place_of(kind_node, file), error.problem(), error.remedy());
  }
  std::vector<std::string> keys = {"name", "kind", "input", "inputs"};
  for (const std::string& key : attributes(kind)) keys.push_back(key);
  const YamlMap map(node, file, "a layer of kind " + kind, keys);
  Entry entry{map.text("name"), layer_kind(map, kind), {above}, map.place()};
  if (entry.name == "input" || !is_name(entry.name)) {
    throw InputError(map.place_of_key("name"),
                     fmt::format("{} is no name for a layer", in_quotes(entry.name)),
                     "choose another, up to 60 printable characters");
  }
  if (map.has("input") && map.has("inputs"))
    throw InputError(map.place(), "a layer has both 'input' and 'inputs'", "keep one of them");
  if (map.has("input")) entry.inputs = {map.text("input")};
  if (map.has("inputs")) {
    const YAML::Node inputs = map.at("inputs");
    if (!inputs.IsSequence())
      throw InputError(place_of(inputs, file), "inputs is no list", "write inputs: [a, b]");
    entry.inputs.clear();
    for (const YAML::Node& input : inputs)
      entry.inputs.push_back(YamlMap::scalar(input, file, "inputs"));
  }
  if (std::holds_alternative<TiedLinear>(entry.kind)) {
    if (map.has("inputs"))
      throw InputError(map.place(), "a tied_linear has 'inputs'", "write input: a, table: b");
    entry.inputs.push_back(map.text("table"));
  }
  return entry;
}

// Depth-first order of the layers; a circle is an error that names the layers on it.
class Sorter {
 public:
  Sorter(const std::vector<Entry>& entries)
      : entries_(entries), state_(entries.size(), State::unseen) {
    for (std::size_t i = 0; i < entries.size(); ++i) index_.emplace(entries[i].name, i);
  }

  [[nodiscard]] std::vector<std::size_t> order() {
    for (std::size_t i = 0; i < entries_.size(); ++i) visit(i);
    return order_;
  }

 private:
  enum class State { unseen, open, done };
  struct Step {
    std::size_t entry;
    std::size_t next_input = 0;
  };

  void visit(std::size_t first) {
    if (state_[first] != State::unseen) return;
    std::vector<Step> stack = {{first}};
    state_[first] = State::open;
    while (!stack.empty()) {
      Step& step = stack.back();
      if (step.next_input == entries_[step.entry].inputs.size()) {
        state_[step.entry] = State::done;
        order_.push_back(step.entry);
        stack.pop_back();
        continue;
      }
      const auto found = index_.find(entries_[step.entry].inputs[step.next_input++]);
      if (found == index_.end() || state_[found->second] == State::done) continue;
      if (state_[found->second] == State::open) fail(stack, found->second);
      state_[found->second] = State::open;
      stack.push_back({found->second});
    }
  }

  [[noreturn]] void fail(const std::vector<Step>& stack, std::size_t closing) const {
    constexpr std::size_t most_named = 8;
    std::string circle;
    std::size_t named = 0;
    bool inside = false;
    for (const Step& step : stack) {
      inside = inside || step.entry == closing;
      if (inside && named++ < most_named) circle += entries_[step.entry].name + " reads ";
    }
    if (named > most_named) circle += "... reads ";
    throw InputError(entries_[closing].place,
                     "layers read each other in a circle: " + circle + entries_[closing].name,
                     "a network has no loops");
  }

  const std::vector<Entry>& entries_;
  std::vector<State> state_;
  std::unordered_map<std::string, std::size_t> index_;
  std::vector<std::size_t> order_;
};

// Runs `action`. An error that names a layer gets the place of that layer in the file.
template <class F>
auto at_layer(const std::vector<Entry>& entries, const std::string& file, F action) {
  try {
    return action();
  } catch (const InputError& error) {
    for (const Entry& entry : entries) {
      if (error.problem().find("'" + entry.name + "'") != std::string::npos)
        throw error.at(entry.place);
    }
    throw error.at({file});
  }
}

// A name as a YAML scalar: bare where every reader takes it for that text, or else in quotes.
std::string name_text(const std::string& name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const bool is_bare =
      is_letter(name.front()) && std::all_of(name.begin(), name.end(), [&](char c) {
        return is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-' ||
               c == '/';
      });
  // Words that YAML 1.1 or 1.2 takes for no text.
  std::string lower = name;
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  constexpr std::array words = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
  if (is_bare && std::find(words.begin(), words.end(), lower) == words.end()) return name;
  std::string quoted = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string extent_text(Extent e) {
  return e.height == e.width ? fmt::format("{}", e.height)
                             : fmt::format("[{}, {}]", e.height, e.width);
}

std::string shape_text(const Shape& in) {
  if (in.is_image) return fmt::format("[{}, {}, {}]", in.channels, in.height, in.width);
  if (!in.is_sequence) return fmt::format("[{}]", in.channels);
  return in.channels == 1 ? fmt::format("{{tokens: {}}}", in.height)
                          : fmt::format("{{tokens: {}, features: {}}}", in.height, in.channels);
}

std::string attributes_text(const LayerKind& kind) {
  std::string text;
  const auto add = [&text](const char* key, const std::string& value) {
    text += fmt::format(", {}: {}", key, value);
  };
  const auto add_pool = [&](const Pool& p) {
    add("kernel", extent_text(p.kernel));
    add("stride", extent_text(p.stride));
    if (p.padding != Extent{0, 0}) add("padding", extent_text(p.padding));
    if (p.ceil) add("ceil", "true");
  };
  if (const auto* c = std::get_if<Convolution>(&kind)) {
    add("channels", fmt::format("{}", c->channels));
    add("kernel", extent_text(c->kernel));
    if (c->stride != Extent{1, 1}) add("stride", extent_text(c->stride));
    if (c->padding != Extent{0, 0}) add("padding", extent_text(c->padding));
    if (c->dilation != Extent{1, 1}) add("dilation", extent_text(c->dilation));
    if (c->groups != 1) add("groups", fmt::format("{}", c->groups));
    if (!c->bias) add("bias", "false");
  } else if (const auto* f = std::get_if<FullyConnected>(&kind)) {
    add("outputs", fmt::format("{}", f->outputs));
    if (!f->bias) add("bias", "false");
  } else if (const auto* m = std::get_if<MaxPool>(&kind)) {
    add_pool(*m);
  } else if (const auto* a = std::get_if<AveragePool>(&kind)) {
    add_pool(*a);
  } else if (const auto* adaptive = std::get_if<AdaptiveAveragePool>(&kind)) {
    add("output", extent_text(adaptive->output));
  } else if (const auto* lrn = std::get_if<Lrn>(&kind)) {
    add("size", fmt::format("{}", lrn->size));
  } else if (const auto* dropout = std::get_if<Dropout>(&kind)) {
    add("probability", fmt::format("{}", dropout->probability));
  } else if (const auto* embedding = std::get_if<Embedding>(&kind)) {
    if (embedding->of != Embedding::Of::tokens) add("of", std::string(name(embedding->of)));
    add("entries", fmt::format("{}", embedding->entries));
    add("features", fmt::format("{}", embedding->features));
  } else if (const auto* linear = std::get_if<Linear>(&kind)) {
    add("outputs", fmt::format("{}", linear->outputs));
    if (!linear->bias) add("bias", "false");
  } else if (const auto* tied = std::get_if<TiedLinear>(&kind)) {
    if (tied->bias) add("bias", "true");
  } else if (const auto* attention = std::get_if<Attention>(&kind)) {
    add("heads", fmt::format("{}", attention->heads));
    if (attention->key_value_heads != 0)
      add("key_value_heads", fmt::format("{}", attention->key_value_heads));
    if (attention->causal) add("causal", "true");
    if (attention->dropout != 0) add("dropout", fmt::format("{}", attention->dropout));
    if (attention->window != 0) add("window", fmt::format("{}", attention->window));
    if (attention->learned_scale) add("learned_scale", "true");
    if (attention->fused) add("fused", "true");
    if (attention->sliding_window != 0)
      add("sliding_window", fmt::format("{}", attention->sliding_window));
    if (attention->value_features != 0)
      add("value_features", fmt::format("{}", attention->value_features));
    if (attention->head_norms) add("head_norms", "true");
    if (attention->rotary_base != 0) add("rotary_base", fmt::format("{}", attention->rotary_base));
    if (attention->rotary_features != 0)
      add("rotary_features", fmt::format("{}", attention->rotary_features));
    if (attention->alibi) add("alibi", "true");
  } else if (const auto* route = std::get_if<RouteTokens>(&kind)) {
    add("experts", fmt::format("{}", route->experts));
    add("active", fmt::format("{}", route->active));
    if (route->bias) add("bias", "true");
  } else if (const auto* expert = std::get_if<ExpertLinear>(&kind)) {
    add("experts", fmt::format("{}", expert->experts));
    add("outputs", fmt::format("{}", expert->outputs));
  } else if (const auto* combine = std::get_if<CombineTokens>(&kind)) {
    add("active", fmt::format("{}", combine->active));
  } else if (const auto* norm = std::get_if<LayerNorm>(&kind)) {
    if (!norm->bias) add("bias", "false");
    if (norm->rms) add("rms", "true");
  } else if (const auto* bias = std::get_if<RelativePositionBias>(&kind)) {
    add("entries", fmt::format("{}", bias->entries));
    add("heads", fmt::format("{}", bias->heads));
    add("window", fmt::format("{}", bias->window));
    if (bias->hidden != 0) add("hidden", fmt::format("{}", bias->hidden));
  } else if (const auto* depth = std::get_if<StochasticDepth>(&kind)) {
    add("probability", fmt::format("{}", depth->probability));
  } else if (const auto* scale = std::get_if<Scale>(&kind)) {
    if (!scale->learned) add("learned", "false");
  } else if (const auto* rearrange = std::get_if<Rearrange>(&kind)) {
    add("output", shape_text(rearrange->output));
    if (rearrange->view) add("view", "true");
  } else if (const auto* slice = std::get_if<Slice>(&kind)) {
    add("output", shape_text(slice->output));
  } else if (const auto* pad = std::get_if<Pad>(&kind)) {
    add("output", shape_text(pad->output));
  } else if (const auto* select = std::get_if<SelectTokens>(&kind)) {
    add("share", fmt::format("{}", select->share));
  }
  return text;
}

}  // namespace

Network parse_network_yaml(std::string_view text, const std::string& file) {
  const YamlMap root(parse_yaml(text, file), file, "the network",
                     {"network", "input", "stored_sample", "layers"});
  const Bytes stored =
      root.has("stored_sample") ? root.parsed("stored_sample", parse_stored_sample) : Bytes{0};
  const std::string name = root.text("network");
  if (!is_name(name)) {
    throw InputError(root.place_of_key("network"),
                     fmt::format("{} is no name for a network", in_quotes(name)),
                     "choose another, up to 60 printable characters");
  }
  NetworkBuilder builder(name, read_shape(root, "input"), stored);
  const YAML::Node layers = root.at("layers");
  if (!layers.IsSequence())
    throw InputError(place_of(layers, file), "layers is no list",
                     "write - {name: conv1, kind: convolution, ...}");
  if (layers.size() == 0)
    throw InputError(place_of(layers, file), fmt::format("network '{}' is empty", name),
                     "give it at least one layer");
  if (layers.size() > most_layers)
    throw InputError(place_of(layers, file), fmt::format("{} layers", layers.size()),
                     "at most 100000 are read");

  std::vector<Entry> entries;
  for (const YAML::Node& layer : layers)
    entries.push_back(read_layer(layer, file, entries.empty() ? "input" : entries.back().name));
  return at_layer(entries, file, [&] {
    for (const std::size_t i : Sorter(entries).order()) {
      try {
        builder.add(entries[i].name, entries[i].kind, entries[i].inputs);
      } catch (const InputError& error) {
        throw error.at(entries[i].place);
      }
    }
    Network network = builder.build();
    (void)work(network);  // shapes must fit together
    return network;
  });
}

std::string to_yaml(const Network& network) {
  std::string text = fmt::format("network: {}\n", name_text(network.name()));
  const Shape& in = network.input();
  text += "input: " + shape_text(in) + "\n";
  if (network.stored_sample_bytes() > Bytes{0})
    text += fmt::format("stored_sample: {} B\n", network.stored_sample_bytes().value());
  text += "layers:\n";
  const auto source_text = [&](int input) {
    return input == network_input ? std::string("input")
                                  : name_text(network.layers()[to_size(input)].name);
  };
  int above = network_input;
  for (const Layer& layer : network.layers()) {
    text += fmt::format("  - {{name: {}, kind: {}{}", name_text(layer.name), name(layer.kind),
                        attributes_text(layer.kind));
    const bool is_tied = std::holds_alternative<TiedLinear>(layer.kind);
    if ((layer.inputs.size() == 1 || is_tied) && layer.inputs[0] != above)
      text += ", input: " + source_text(layer.inputs[0]);
    if (is_tied) {
      text += ", table: " + source_text(layer.inputs[1]);
    } else if (layer.inputs.size() > 1) {
      text += ", inputs: [";
      for (std::size_t i = 0; i < layer.inputs.size(); ++i)
        text += (i == 0 ? "" : ", ") + source_text(layer.inputs[i]);
      text += "]";
    }
    text += "}\n";
    ++above;
  }
  return text;
}

}  // namespace paceline::models

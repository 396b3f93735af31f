// Tests: tests/models/network_test.cc, tests/models/network_hostile_test.cc.
#include "models/network/network.h"

#include <fmt/core.h>

#include "models/base/limits.h"
#include "models/base/names.h"
#include "models/base/to_size.h"

namespace paceline::models {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 40;

bool in_range(std::int64_t size, std::int64_t least) {
  return size >= least && size <= largest_size;
}

// The first attribute of a kind that is out of range, as "stride 0x1"; empty if none is.
struct OutOfRange {
  std::string operator()(const Convolution& c) const {
    return first({of("channels", c.channels), of("kernel", c.kernel), of("stride", c.stride),
                  of("padding", c.padding, 0), of("dilation", c.dilation), of("groups", c.groups)});
  }
  std::string operator()(const FullyConnected& f) const { return of("outputs", f.outputs); }
  std::string operator()(const MaxPool& p) const { return pool(p); }
  std::string operator()(const AveragePool& p) const { return pool(p); }
  std::string operator()(const AdaptiveAveragePool& p) const { return of("output", p.output); }
  std::string operator()(const Lrn& l) const { return of("size", l.size); }
  std::string operator()(const Dropout& d) const { return probability(d.probability); }
  std::string operator()(const StochasticDepth& d) const { return probability(d.probability); }
  std::string operator()(const Rearrange& r) const { return of("output", r.output); }
  std::string operator()(const Slice& s) const { return of("output", s.output); }
  std::string operator()(const Pad& p) const { return of("output", p.output); }
  std::string operator()(const Embedding& e) const {
    return first({of("entries", e.entries), of("features", e.features)});
  }
  std::string operator()(const Linear& l) const { return of("outputs", l.outputs); }
  std::string operator()(const Attention& a) const {
    const bool is_probability = a.dropout >= 0 && a.dropout <= 1;
    if (!is_probability) return fmt::format("dropout {}", a.dropout);
    return first({of("heads", a.heads),
                  a.key_value_heads == 0 ? "" : of("key_value_heads", a.key_value_heads),
                  a.window == 0 ? "" : of("window", a.window),
                  a.sliding_window == 0 ? "" : of("sliding_window", a.sliding_window),
                  a.value_features == 0 ? "" : of("value_features", a.value_features), rotary(a)});
  }
  std::string operator()(const RelativePositionBias& b) const {
    return first({of("entries", b.entries), of("heads", b.heads), of("window", b.window),
                  b.hidden == 0 ? "" : of("hidden", b.hidden)});
  }
  std::string operator()(const SelectTokens& s) const {
    const bool is_share = s.share > 0 && s.share <= 1;
    return is_share ? "" : fmt::format("share {}", s.share);
  }
  std::string operator()(const RouteTokens& r) const {
    return r.active > r.experts ? fmt::format("active {} of experts {}", r.active, r.experts)
                                : first({of("experts", r.experts), of("active", r.active)});
  }
  std::string operator()(const ExpertLinear& e) const {
    return first({of("experts", e.experts), of("outputs", e.outputs)});
  }
  std::string operator()(const CombineTokens& c) const { return of("active", c.active); }
  std::string operator()(const TiedLinear&) const { return ""; }
  std::string operator()(const LayerNorm&) const { return ""; }
  std::string operator()(const Gelu&) const { return ""; }
  std::string operator()(const Silu&) const { return ""; }
  std::string operator()(const Tanh&) const { return ""; }
  std::string operator()(const FirstToken&) const { return ""; }
  std::string operator()(const MeanToken&) const { return ""; }
  std::string operator()(const BatchNorm&) const { return ""; }
  std::string operator()(const Relu&) const { return ""; }
  std::string operator()(const Add&) const { return ""; }
  std::string operator()(const Multiply&) const { return ""; }
  std::string operator()(const Scale&) const { return ""; }
  std::string operator()(const ClassToken&) const { return ""; }
  std::string operator()(const Concat&) const { return ""; }
  std::string operator()(const Flatten&) const { return ""; }
  std::string operator()(const SoftmaxCrossEntropy&) const { return ""; }

 private:
  static std::string of(const char* what, std::int64_t size) {
    return in_range(size, 1) ? "" : fmt::format("{} {}", what, size);
  }
  static std::string of(const char* what, Extent e, std::int64_t least = 1) {
    if (in_range(e.height, least) && in_range(e.width, least)) return "";
    return fmt::format("{} {}x{}", what, e.height, e.width);
  }
  static std::string of(const char* what, const Shape& s) {
    return in_range(s.channels, 1) && in_range(s.height, 1) && in_range(s.width, 1)
               ? ""
               : fmt::format("{} {}", what, to_text(s));
  }
  static std::string rotary(const Attention& a) {
    const bool is_base =
        a.rotary_base == 0 || (a.rotary_base > 1 && a.rotary_base <= largest_rotary_base);
    if (!is_base) return fmt::format("rotary_base {}", a.rotary_base);
    const bool are_features =
        in_range(a.rotary_features, 0) && (a.rotary_base > 0 || a.rotary_features == 0);
    return are_features ? "" : fmt::format("rotary_features {}", a.rotary_features);
  }
  static std::string probability(double p) {
    const bool is_probability = p >= 0 && p <= 1;  // NaN is none
    return is_probability ? "" : fmt::format("probability {}", p);
  }
  static std::string pool(const Pool& p) {
    return first({of("kernel", p.kernel), of("stride", p.stride), of("padding", p.padding, 0)});
  }
  static std::string first(std::initializer_list<std::string> faults) {
    for (const std::string& fault : faults) {
      if (!fault.empty()) return fault;
    }
    return "";
  }
};

// What a kind takes, in words.
struct Taken {
  const char* inputs;
  const char* remedy;
};

Taken what_is_taken(const LayerKind& kind) {
  if (takes_many(kind)) return {"two or more inputs", "write inputs: [a, b]"};
  if (std::holds_alternative<Attention>(kind))
    return {"one input or three, and a bias",
            "write inputs: [queries, keys, values], or input: all_three"};
  if (std::holds_alternative<Multiply>(kind)) return {"two inputs", "write inputs: [a, b]"};
  if (std::holds_alternative<TiedLinear>(kind))
    return {"one input and the table of an embedding", "write input: a, table: embedding"};
  return {"one input", "write input: a, or leave it out to read the layer before"};
}

}  // namespace

bool is_name(std::string_view text) {
  return !text.empty() && in_quotes(text) == "'" + std::string(text) + "'";
}

Network Network::with_sequence(std::int64_t elements) const {
  if (!input_.is_sequence)
    throw InputError(fmt::format("network '{}' reads no sequence", name_),
                     "leave the length of a sequence out");
  if (!in_range(elements, 1))
    throw InputError(fmt::format("a sequence of {}", elements), "use 1 to 1000000");
  Network result = *this;
  result.input_.height = elements;
  return result;
}

NetworkBuilder::NetworkBuilder(std::string name, Shape input, Bytes stored_sample) {
  if (!is_name(name)) {
    throw InputError(fmt::format("{} is no name for a network", in_quotes(name)),
                     "choose another, up to 60 printable characters");
  }
  // In this order no product overflows.
  const bool sizes_fit = in_range(input.channels, 1) && in_range(input.height, 1) &&
                         in_range(input.width, 1) && input.elements() <= most_elements &&
                         (input.is_image || input.width == 1) &&
                         (input.is_image || input.is_sequence || input.height == 1);
  if (!sizes_fit) {
    throw InputError(fmt::format("network '{}': input {} is out of range", name, to_text(input)),
                     "sizes are from 1 to 1000000, with at most 2^40 elements in all");
  }
  if (stored_sample != Bytes{0} && !within_limits(stored_sample)) {
    throw InputError(fmt::format("network '{}': a stored sample of {} bytes is out of range", name,
                                 stored_sample.value()),
                     "write 1 to 1e15 bytes, or 0 if unknown");
  }
  network_.name_ = std::move(name);
  network_.input_ = input;
  network_.stored_sample_ = stored_sample;
  index_.emplace("input", network_input);
}

std::string NetworkBuilder::add(std::string name, LayerKind kind) {
  const std::string previous = network_.layers_.empty() ? "input" : network_.layers_.back().name;
  return add(std::move(name), std::move(kind), {previous});
}

std::string NetworkBuilder::add(std::string name, LayerKind kind,
                                const std::vector<std::string>& inputs) {
  if (!is_name(name) || name == "input") {
    throw InputError(fmt::format("{} is no name for a layer", in_quotes(name)),
                     "choose another, up to 60 printable characters");
  }
  if (index_.contains(name)) {
    throw InputError(fmt::format("two layers are called '{}'", name),
                     "give each layer a name of its own");
  }
  if (const std::string fault = std::visit(OutOfRange{}, kind); !fault.empty()) {
    throw InputError(fmt::format("layer '{}': {} is out of range", name, fault),
                     "sizes are from 1 (padding: 0) to 1000000, probabilities from 0 to 1");
  }
  if (!takes(kind, inputs.size())) {
    const Taken taken = what_is_taken(kind);
    throw InputError(fmt::format("layer '{}': {} takes {}, and has {}", name, models::name(kind),
                                 taken.inputs, inputs.size()),
                     taken.remedy);
  }
  Layer layer{name, std::move(kind), {}};
  for (const std::string& input : inputs) {
    const auto found = index_.find(input);
    if (found == index_.end()) {
      std::vector<std::string> known = {"input"};
      for (const Layer& other : network_.layers_) known.push_back(other.name);
      const auto near = nearest_name(input, known);
      throw InputError(
          fmt::format("layer '{}' reads {}, which is no layer", name, in_quotes(input)),
          near ? "did you mean '" + *near + "'?" : "name a layer of this network, or input");
    }
    layer.inputs.push_back(found->second);
  }
  if (std::holds_alternative<TiedLinear>(layer.kind)) check_table(layer, inputs[1]);
  index_.emplace(name, static_cast<int>(network_.layers_.size()));
  network_.layers_.push_back(std::move(layer));
  return name;
}

// The second input of a tied linear layer is an embedding of tokens.
void NetworkBuilder::check_table(const Layer& layer, const std::string& table) const {
  const Embedding* embedding = nullptr;
  if (layer.inputs[1] != network_input)
    embedding = std::get_if<Embedding>(&network_.layers_[to_size(layer.inputs[1])].kind);
  if (embedding == nullptr || embedding->of != Embedding::Of::tokens)
    throw InputError(
        fmt::format("layer '{}': its table '{}' is no embedding of tokens", layer.name, table),
        "name a layer of kind embedding");
}

Network NetworkBuilder::build() const {
  if (network_.layers_.empty()) {
    throw InputError(fmt::format("network '{}' is empty", network_.name_),
                     "give it at least one layer");
  }
  std::vector<bool> is_read(network_.layers_.size());
  for (const Layer& layer : network_.layers_) {
    for (const int input : layer.inputs) {
      if (input != network_input) is_read[to_size(input)] = true;
    }
  }
  for (std::size_t i = 0; i + 1 < is_read.size(); ++i) {
    if (!is_read[i]) {
      throw InputError(fmt::format("nothing reads layer '{}'", network_.layers_[i].name),
                       "connect it, or leave it out; only the last layer has no reader");
    }
  }
  return network_;
}

}  // namespace paceline::models

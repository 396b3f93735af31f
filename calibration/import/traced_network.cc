// Tests: tests/calibration/import_traced_network_test.cc.
#include "calibration/import/traced_network.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "calibration/import/table_text.h"
#include "models/base/error.h"
#include "models/network/shape_inference.h"

namespace paceline::calibration {
namespace {

using Operator = KinetoTrace::Operator;
using Sizes = std::vector<std::int64_t>;

constexpr std::size_t most_layers = 10'000;
constexpr std::string_view advice =
    "give --model, a network that is written down, or made by from_torch (docs/python.md)";

// Operators that make or move tensors, and are no layers.
constexpr std::array<std::string_view, 12> bookkeeping = {
    "aten::empty", "aten::zeros",      "aten::ones",      "aten::zero_",
    "aten::fill_", "aten::copy_",      "aten::to",        "aten::detach",
    "aten::item",  "aten::lift_fresh", "aten::ones_like", "aten::zeros_like"};

// "[3, 3]", "[3]" or "3" as a height and a width.
std::optional<models::Extent> extent(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  std::vector<std::int64_t> values;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view part = text.substr(0, comma);
    while (part.starts_with(' ')) part.remove_prefix(1);
    const std::optional<double> value = number(part);
    if (!value || *value < 0 || *value > models::largest_size || !is_whole_number(part)) return {};
    values.push_back(static_cast<std::int64_t>(*value));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  if (values.size() == 1) return models::square(values[0]);
  if (values.size() == 2) return models::Extent{values[0], values[1]};
  return {};
}

class Builder {
 public:
  Builder(const KinetoTrace& trace, const std::string& file) : trace_(trace), file_(file) {}

  TracedNetwork build(const std::string& name) {
    const std::vector<std::size_t> forward = outermost_of_forward();
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < forward.size(); ++i) {
      const Operator& op = trace_.operators[forward[i]];
      const bool counts_batches = op.name == "aten::add_" && i + 1 < forward.size() &&
                                  trace_.operators[forward[i + 1]].name == "aten::batch_norm";
      if (counts_batches ||
          std::find(bookkeeping.begin(), bookkeeping.end(), op.name) != bookkeeping.end())
        continue;
      kept.push_back(forward[i]);
    }
    if (kept.size() > most_layers)
      fail_at("the trace", fmt::format("an iteration has {} operators", kept.size()));
    read_names(kept);
    std::vector<models::Layer> layers;
    std::vector<Sizes> inputs;
    for (const std::size_t i : kept) {
      const Operator& op = trace_.operators[i];
      layers.push_back({"", kind_of(op), {}});
      layers.back().name = name_of(i, layers.back().kind);
      inputs.push_back(sizes(op, 0));
      ++recognised_[op.name];
    }
    if (layers.empty()) fail_at("the trace", "there are no operators of a forward pass in it");
    models::NetworkBuilder builder(name, shape_of(inputs.front(), layers.front().name));
    for (const models::Layer& layer : layers) builder.add(layer.name, layer.kind);
    TracedNetwork result{builder.build(),
                         static_cast<int>(std::min<std::int64_t>(inputs.front()[0], 1'000'000))};
    check_chain(result.network, inputs);
    std::string counts;
    for (const auto& [op, count] : recognised_)
      counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, op);
    result.remarks.push_back(
        fmt::format("{} operators of forward became layers: {}", layers.size(), counts));
    result.remarks.push_back(
        fmt::format("each layer reads the one before it, with a batch of {}", result.batch));
    return result;
  }

 private:
  [[noreturn]] void fail_at(const std::string& what, const std::string& problem) const {
    throw InputError({file_}, fmt::format("{}: {}", what, problem), std::string(advice));
  }

  [[nodiscard]] std::vector<std::size_t> outermost_of_forward() const {
    const KinetoTrace::Step step = trace_.steps().front();
    std::vector<std::size_t> forward;
    for (std::size_t i = 0; i < trace_.operators.size(); ++i) {
      const Operator& op = trace_.operators[i];
      if (op.parent == KinetoTrace::none && op.begin >= step.begin &&
          op.begin < std::min(step.end, step.backward) && op.name.starts_with("aten::"))
        forward.push_back(i);
    }
    std::stable_sort(forward.begin(), forward.end(), [&](std::size_t a, std::size_t b) {
      return trace_.operators[a].begin < trace_.operators[b].begin;
    });
    // The network ends before the loss, which the training loop computes.
    const auto loss = std::find_if(forward.begin(), forward.end(), [&](std::size_t i) {
      return trace_.operators[i].name == "aten::cross_entropy_loss";
    });
    if (loss != forward.end()) forward.erase(loss + 1, forward.end());
    return forward;
  }

  [[nodiscard]] const Sizes& sizes(const Operator& op, std::size_t index) const {
    static const Sizes none;
    if (op.input_sizes.empty())
      fail_at(op.name, "the trace has no shapes; profile with record_shapes=True");
    return index < op.input_sizes.size() ? op.input_sizes[index] : none;
  }

  [[nodiscard]] const std::string& concrete(const Operator& op, std::size_t index) const {
    if (index >= op.concrete_inputs.size() || op.concrete_inputs[index].empty())
      fail_at(op.name, fmt::format("input {} is not told; PyTorch writes it from 2.1 on", index));
    return op.concrete_inputs[index];
  }

  [[nodiscard]] models::Extent extent_of(const Operator& op, std::size_t index) const {
    const std::string& text = concrete(op, index);
    const std::optional<models::Extent> value = extent(text);
    if (!value) fail_at(op.name, fmt::format("input {} is {}", index, in_quotes(text)));
    return *value;
  }

  [[nodiscard]] models::LayerKind kind_of(const Operator& op) const {
    const std::string& name = op.name;
    if (name == "aten::conv2d") return convolution(op);
    if (name == "aten::linear") {
      if (sizes(op, 0).size() != 2 || sizes(op, 1).size() != 2)
        fail_at(name, "it reads no vectors, and sequences are not read from traces");
      return models::FullyConnected{sizes(op, 1)[0], !sizes(op, 2).empty()};
    }
    if (name == "aten::batch_norm") return models::BatchNorm{};
    if (name == "aten::relu" || name == "aten::relu_") return models::Relu{};
    if (name == "aten::max_pool2d") {
      if (extent_of(op, 4) != models::square(1)) fail_at(name, "its windows are dilated");
      return models::MaxPool{pool(op, 5)};
    }
    if (name == "aten::avg_pool2d") return models::AveragePool{pool(op, 4)};
    if (name == "aten::adaptive_avg_pool2d") return models::AdaptiveAveragePool{extent_of(op, 1)};
    if (name == "aten::dropout") {
      const std::optional<double> share = number(concrete(op, 1));
      if (!share) fail_at(name, "its probability is " + in_quotes(concrete(op, 1)));
      return models::Dropout{*share};
    }
    if (name == "aten::flatten") return models::Flatten{};
    if (name == "aten::cross_entropy_loss") return models::SoftmaxCrossEntropy{};
    fail_at(name, name.starts_with("aten::add") || name == "aten::cat"
                      ? "branches meet in it, and a trace does not say which"
                      : "it is no layer that is known here");
  }

  [[nodiscard]] models::Convolution convolution(const Operator& op) const {
    const Sizes& weight = sizes(op, 1);
    if (sizes(op, 0).size() != 4 || weight.size() != 4)
      fail_at(op.name, "it reads no batch of images");
    models::Convolution layer;
    layer.channels = weight[0];
    layer.kernel = {weight[2], weight[3]};
    layer.bias = !sizes(op, 2).empty();
    layer.stride = extent_of(op, 3);
    layer.padding = extent_of(op, 4);
    layer.dilation = extent_of(op, 5);
    layer.groups = extent_of(op, 6).height;
    return layer;
  }

  [[nodiscard]] models::Pool pool(const Operator& op, std::size_t ceil) const {
    models::Pool pool;
    pool.kernel = extent_of(op, 1);
    pool.stride = concrete(op, 2) == "[]" ? pool.kernel : extent_of(op, 2);
    pool.padding = extent_of(op, 3);
    pool.ceil = concrete(op, ceil) == "True";
    return pool;
  }

  // Finds the record_functions that stand around one of the layers alone.
  void read_names(const std::vector<std::size_t>& layers) {
    for (const KinetoTrace::Stretch& stretch : trace_.annotations) {
      const auto begins_before = [&](std::size_t i, double begin) {
        return trace_.operators[i].begin < begin;
      };
      const auto first =
          std::lower_bound(layers.begin(), layers.end(), stretch.begin, begins_before);
      const auto last = std::lower_bound(first, layers.end(), stretch.end, begins_before);
      if (last - first != 1 || trace_.operators[*first].thread != stretch.thread) continue;
      const std::size_t at = stretch.name.find_last_of(" /");
      const std::string word = stretch.name.substr(at == std::string::npos ? 0 : at + 1);
      if (models::is_name(word) && word != "input" && !stretch.name.starts_with("ProfilerStep#"))
        stated_[*first] = word;
    }
  }

  // The stated name, or the kind and a number.
  std::string name_of(std::size_t op, const models::LayerKind& kind) {
    const auto stated = stated_.find(op);
    if (stated != stated_.end() && names_.insert(stated->second).second) return stated->second;
    static const std::map<std::string_view, std::string_view> shorter = {
        {"convolution", "conv"},
        {"fully_connected", "fc"},
        {"batch_norm", "bn"},
        {"max_pool", "pool"},
        {"average_pool", "pool"},
        {"adaptive_average_pool", "pool"},
        {"softmax_cross_entropy", "loss"}};
    const std::string_view of_kind = models::name(kind);
    const auto found = shorter.find(of_kind);
    const std::string_view stem = found == shorter.end() ? of_kind : found->second;
    std::string name;
    do {
      name = fmt::format("{}{}", stem, ++numbers_[stem]);
    } while (!names_.insert(name).second);
    return name;
  }

  // The shape of one sample of a batch with these sizes.
  [[nodiscard]] models::Shape shape_of(const Sizes& sizes, const std::string& layer) const {
    if (sizes.size() == 4 && sizes[0] > 0)
      return models::Shape::image(sizes[1], sizes[2], sizes[3]);
    if (sizes.size() == 2 && sizes[0] > 0) return models::Shape::vector(sizes[1]);
    fail_at(layer, "it reads neither images nor vectors");
  }

  void check_chain(const models::Network& network, const std::vector<Sizes>& inputs) const {
    const std::vector<models::Shape> outputs = models::infer_shapes(network);
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      const models::Shape read = shape_of(inputs[i], network.layers()[i].name);
      if (read == outputs[i - 1] && inputs[i][0] == inputs[0][0]) continue;
      fail_at(
          network.layers()[i].name,
          fmt::format("it reads {}, and the layer before it, {}, makes {}", models::described(read),
                      network.layers()[i - 1].name, models::described(outputs[i - 1])));
    }
  }

  const KinetoTrace& trace_;
  const std::string& file_;
  std::map<std::size_t, std::string> stated_;  // by operator
  std::set<std::string> names_;
  std::map<std::string_view, int> numbers_;
  std::map<std::string, int> recognised_;
};

}  // namespace

bool has_shapes(std::string_view text) {
  constexpr std::size_t head = 1 << 20;
  text = text.substr(0, head);
  return text.find("\"Input Dims\"") != std::string_view::npos &&
         text.find("\"Concrete Inputs\"") != std::string_view::npos;
}

TracedNetwork traced_network(std::string_view text, const std::string& file,
                             const std::string& name) {
  const KinetoTrace trace = read_kineto_trace(text, file);
  if (trace.bare)
    throw InputError({file}, "this form of trace has no shapes, and so no network",
                     std::string(advice));
  return Builder(trace, file).build(name);
}

}  // namespace paceline::calibration

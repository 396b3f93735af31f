// Tests: tests/calibration/import_kineto_test.cc.
//
// Implementation. A scope is a stretch of a thread that is one layer's forward; an operator belongs
// to the last scope that begins before it and holds it. What an operator launches, and what has its
// sequence number in backward, belongs to the same layer.
#include "calibration/import/layer_attribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <unordered_map>
#include <utility>

#include "calibration/fit/statistics.h"
#include "models/base/to_size.h"

namespace paceline::calibration {
namespace {

using Operator = KinetoTrace::Operator;
using Stretch = KinetoTrace::Stretch;
using Kernel = KinetoTrace::Kernel;
using Step = KinetoTrace::Step;

constexpr double us = 1e-6;
constexpr int none = KinetoTrace::none;

// Kinds of layers that the same operators compute, and what they are called in a trace. Where a network
// has layers of several of the kinds, they are told apart by their order alone.
struct KindNames {
  std::array<std::string_view, 3> kinds;
  std::array<std::string_view, 10> modules;
  std::array<std::string_view, 18> operators;
};

// Attention comes first: the operators inside it are then counted as attention, not as their own kind.
constexpr std::array<KindNames, 17> kinds = {{
    {{"attention"},
     {},
     {"aten::scaled_dot_product_attention", "aten::_scaled_dot_product_attention"}},
    {{"convolution"}, {"Conv2d"}, {"aten::conv2d", "aten::convolution"}},
    {{"fully_connected", "linear", "tied_linear"},
     {"Linear", "NonDynamicallyQuantizableLinear"},
     {"aten::linear", "aten::addmm"}},
    {{"batch_norm"}, {"BatchNorm2d", "BatchNorm1d", "SyncBatchNorm"}, {"aten::batch_norm"}},
    {{"relu"},
     {"ReLU", "ReLU6", "LeakyReLU", "Hardtanh", "Threshold"},
     {"aten::relu", "aten::relu_", "aten::relu6", "aten::relu6_", "aten::hardtanh",
      "aten::hardtanh_", "aten::leaky_relu", "aten::leaky_relu_", "aten::threshold",
      "aten::threshold_"}},
    {{"max_pool"}, {"MaxPool2d"}, {"aten::max_pool2d"}},
    {{"average_pool"}, {"AvgPool2d"}, {"aten::avg_pool2d"}},
    {{"adaptive_average_pool"}, {"AdaptiveAvgPool2d"}, {"aten::adaptive_avg_pool2d"}},
    {{"lrn"}, {"LocalResponseNorm"}, {}},
    {{"dropout"},
     {"Dropout", "Dropout2d"},
     {"aten::dropout", "aten::dropout_", "aten::feature_dropout", "aten::feature_dropout_"}},
    {{"add"}, {}, {"aten::add", "aten::add_"}},
    {{"concat"}, {}, {"aten::cat", "aten::concat"}},
    {{"flatten"}, {"Flatten"}, {"aten::flatten"}},
    {{"embedding"}, {"Embedding"}, {"aten::embedding"}},
    {{"layer_norm"}, {"LayerNorm"}, {"aten::layer_norm"}},
    {{"gelu", "tanh"},
     {"GELU", "SiLU", "Hardswish", "Hardsigmoid", "ELU", "SELU", "Mish", "Softplus", "Tanh",
      "Sigmoid"},
     {"aten::gelu", "aten::gelu_", "aten::silu", "aten::silu_", "aten::hardswish",
      "aten::hardswish_", "aten::hardsigmoid", "aten::hardsigmoid_", "aten::elu", "aten::elu_",
      "aten::selu", "aten::mish", "aten::mish_", "aten::softplus", "aten::tanh", "aten::tanh_",
      "aten::sigmoid", "aten::sigmoid_"}},
    {{"softmax_cross_entropy"}, {"CrossEntropyLoss"}, {"aten::cross_entropy_loss"}},
}};

template <std::size_t n>
bool is_one_of(std::string_view name, const std::array<std::string_view, n>& names) {
  return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
}

// The class of a module: that of "nn.Module: Conv2d_0" is "Conv2d".
std::string_view module_class(std::string_view name) {
  constexpr std::string_view prefix = "nn.Module: ";
  if (!name.starts_with(prefix)) return {};
  name.remove_prefix(prefix.size());
  return name.substr(0, name.rfind('_'));
}

// The forward of a layer in one step.
struct Scope {
  double begin;
  double end;
  int thread;
  int layer;
};

// The last word of a name: that of "forward: layer1.0.conv1" is "layer1.0.conv1".
std::string_view last_part(std::string_view name) {
  const std::size_t at = name.find_last_of(" /");
  return at == std::string_view::npos ? name : name.substr(at + 1);
}

class Attribution {
 public:
  Attribution(const KinetoTrace& trace, const models::Network& network)
      : trace_(trace), network_(network) {
    for (std::size_t i = 0; i < network.layers().size(); ++i)
      by_name_[network.layers()[i].name] = static_cast<int>(i);
    launch();
    forward_.resize(network.layers().size());
    backward_.resize(network.layers().size());
  }

  void run(Imported& imported) {
    const std::vector<Step> steps = trace_.steps();
    for (const Step& step : steps) attribute(step);
    imported.iterations = steps.size();
    const std::string source =
        fmt::format("{}, median of {} iteration{}", on_gpu_ ? "kernels" : "operators on the CPU",
                    steps.size(), steps.size() == 1 ? "" : "s");
    for (std::size_t i = 0; i < forward_.size(); ++i) {
      if (forward_[i].empty()) continue;
      imported.layers.push_back(
          {network_.layers()[i].name, figure(forward_[i], source), figure(backward_[i], source)});
    }
    if (named_ && imported.layers.size() < forward_.size())
      imported.remarks.push_back(
          fmt::format("layers that no record_function of the trace names: {} of {}",
                      forward_.size() - imported.layers.size(), forward_.size()));
    for (const auto& [kind, found] : missed_) {
      imported.remarks.push_back(fmt::format(
          "layers of kind {} are left out: the network has {}, an iteration of the trace {}", kind,
          found.first, found.second));
    }
    remark_on_unknown_kinds(imported);
    remark_on_shares(imported);
    forward_time_.remark(imported, "forward");
    if (backward_total_ > 0) backward_time_.remark(imported, "backward");
    remark_on_updates(imported);
    if (backward_total_ == 0)
      imported.remarks.emplace_back("there is no backward in this trace: its times are 0");
  }

 private:
  // The time of a pass, and what of it is of no layer, by name.
  struct PassTime {
    double all = 0;
    std::map<std::string, double> without_layer = {};

    void remark(Imported& imported, std::string_view pass) const {
      std::vector<std::pair<double, std::string>> others;
      double lost = 0;
      for (const auto& [name, time] : without_layer) {
        others.emplace_back(time, name);
        lost += time;
      }
      if (all <= 0) return;
      constexpr double little = 0.01;
      if (lost <= little * all) {
        imported.remarks.push_back(
            fmt::format("{:.1f} % of {} belongs to no layer", 100 * lost / all, pass));
        return;
      }
      std::sort(others.rbegin(), others.rend());
      constexpr std::size_t most = 5;
      std::string text;
      for (std::size_t i = 0; i < std::min(others.size(), most); ++i)
        text += fmt::format("{}{} {:.1f} %", i == 0 ? "" : ", ", others[i].second,
                            100 * others[i].first / all);
      if (others.size() > most) text += fmt::format(", {} more", others.size() - most);
      imported.remarks.push_back(
          fmt::format("{:.0f} % of {} belongs to no layer: {}", 100 * lost / all, pass, text));
    }
  };

  // Layers that a trace is not searched for have no time, which nothing else says.
  void remark_on_unknown_kinds(Imported& imported) const {
    if (named_) return;
    std::map<std::string_view, int> unknown;
    for (const models::Layer& layer : network_.layers()) {
      const std::string_view kind = models::name(layer.kind);
      const bool is_known = std::any_of(kinds.begin(), kinds.end(), [&](const KindNames& names) {
        return is_one_of(kind, names.kinds);
      });
      if (!is_known) ++unknown[kind];
    }
    for (const auto& [kind, count] : unknown)
      imported.remarks.push_back(fmt::format(
          "layers of kind {} are left out: no operator alone tells the network's {}", kind, count));
  }

  // The time of the optimizer belongs to no pass and to no layer.
  void remark_on_updates(Imported& imported) const {
    std::vector<double> times;
    for (const Stretch& stretch : trace_.annotations) {
      if (stretch.name.starts_with("Optimizer.step#")) times.push_back(stretch.end - stretch.begin);
    }
    if (times.empty()) return;
    constexpr double ms = 1e-3;
    imported.remarks.push_back(
        fmt::format("Optimizer.step takes {:.4g} ms, the median of {}, which belongs to no layer",
                    median(times) * ms, times.size()));
  }

  // How the time of the layers is shared between their kinds, forward and backward together.
  void remark_on_shares(Imported& imported) const {
    std::map<std::string_view, double> of_kind;
    double all = 0;
    for (const ImportedLayer& timed : imported.layers) {
      const models::LayerKind& kind = network_.layers()[to_size(by_name_.at(timed.layer))].kind;
      const double time = (timed.forward.value + timed.backward.value).value();
      of_kind[models::name(kind)] += time;
      all += time;
    }
    if (all <= 0) return;
    std::vector<std::pair<double, std::string_view>> shares;
    for (const auto& [kind, time] : of_kind) shares.emplace_back(time, kind);
    std::sort(shares.rbegin(), shares.rend());
    std::string text;
    for (const auto& [time, kind] : shares)
      text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", kind, 100 * time / all);
    imported.remarks.push_back(fmt::format("time of the layers by kind: {}", text));
  }

  // The name of a root operator, without what autograd says around it.
  static std::string name_of_root(const Operator& root) {
    std::string_view name = root.name;
    for (const std::string_view around : std::array<std::string_view, 2>{
             "autograd::engine::evaluate_function: ", "torch::autograd::"})
      if (name.starts_with(around)) name.remove_prefix(around.size());
    return std::string(without_number(name));
  }

  static Figure<Seconds> figure(const std::vector<double>& times_us, const std::string& source) {
    std::vector<Seconds> times;
    for (const double time : times_us) times.emplace_back(time * us);
    return median_figure(times, Provenance::measured, source);
  }

  // Adds up the time on the GPU of what each operator launched itself.
  void launch() {
    on_gpu_ = !trace_.kernels.empty();
    if (!on_gpu_) return;
    kernel_us_.resize(trace_.operators.size(), 0);
    std::unordered_map<double, int> by_external;
    for (std::size_t i = 0; i < trace_.operators.size(); ++i) {
      if (trace_.operators[i].external >= 0)
        by_external.try_emplace(trace_.operators[i].external, static_cast<int>(i));
    }
    for (const Kernel& kernel : trace_.kernels) {
      // The call is tried first: there are traces whose kernels have the correlation as
      // "External id".
      int launcher = none;
      const auto call = trace_.calls.find(kernel.correlation);
      if (call != trace_.calls.end())
        launcher = trace_.running(call->second.thread, call->second.begin);
      const auto known = by_external.find(kernel.external);
      if (launcher == none && known != by_external.end()) launcher = known->second;
      if (launcher != none) kernel_us_[to_size(launcher)] += kernel.duration;
    }
  }

  // The time that the operator counts for by itself. On a GPU that is the time of its kernels; on
  // the CPU it is all the time of a root, and none of an operator inside another.
  [[nodiscard]] double own_us(std::size_t index) const {
    const Operator& op = trace_.operators[index];
    if (on_gpu_) return kernel_us_[index];
    return op.parent == none ? op.end - op.begin : 0;
  }

  void attribute(const Step& step) {
    std::vector<Scope> scopes = named_scopes(step);
    named_ = named_ || !scopes.empty();
    if (scopes.empty()) scopes = scopes_by_kind(step);
    if (scopes.empty()) return;
    std::stable_sort(scopes.begin(), scopes.end(), runs_before<Scope>);
    std::vector<double> forward(forward_.size(), 0);
    std::vector<double> backward(forward_.size(), 0);
    std::vector<bool> ran(forward_.size(), false);
    for (const Scope& scope : scopes) {
      ran[to_size(scope.layer)] = true;
      if (!on_gpu_) forward[to_size(scope.layer)] += scope.end - scope.begin;
    }
    std::unordered_map<double, std::pair<double, int>>
        claims;  // begin and layer, by sequence number
    for (std::size_t i = 0; i < trace_.operators.size(); ++i) {
      const Operator& op = trace_.operators[i];
      if (op.begin < step.begin || op.begin >= std::min(step.end, step.backward)) continue;
      const int layer = layer_at(scopes, op);
      const double own = own_us(i);
      if (on_gpu_ && layer != none) forward[to_size(layer)] += own;
      forward_time_.all += own;
      if (layer == none && own > 0)
        forward_time_.without_layer[name_of_root(trace_.operators[to_size(op.root)])] += own;
      if (op.backward_unknown && layer != none) ran[to_size(layer)] = false;
      if (op.sequence < 0) continue;
      const auto [claim, is_new] = claims.try_emplace(op.sequence, op.begin, layer);
      if (!is_new && op.begin >= claim->second.first) claim->second = {op.begin, layer};
    }
    for (std::size_t i = 0; i < trace_.operators.size(); ++i) {
      const Operator& op = trace_.operators[i];
      if (op.begin < step.backward || op.begin >= step.end) continue;
      const Operator& root = trace_.operators[to_size(op.root)];
      if (!root.is_backward()) continue;
      const double time = own_us(i);
      backward_total_ += time;
      backward_time_.all += time;
      const auto claim = claims.find(root.sequence);
      if (claim == claims.end() || claim->second.second == none) {
        if (time > 0) backward_time_.without_layer[name_of_root(root)] += time;
        continue;
      }
      backward[to_size(claim->second.second)] += time;
    }
    for (std::size_t i = 0; i < ran.size(); ++i) {
      if (!ran[i]) continue;
      forward_[i].push_back(forward[i]);
      backward_[i].push_back(backward[i]);
    }
  }

  // The layer of the innermost scope that holds the operator: the last one, since scopes are ordered
  // by thread and begin.
  [[nodiscard]] static int layer_at(const std::vector<Scope>& scopes, const Operator& op) {
    auto after = std::upper_bound(
        scopes.begin(), scopes.end(), op, [](const Operator& o, const Scope& scope) {
          return o.thread != scope.thread ? o.thread < scope.thread : o.begin < scope.begin;
        });
    // Layers hardly nest, so a few steps back are enough to leave an inner one that has ended.
    for (int back = 0; back < 8 && after != scopes.begin(); ++back) {
      --after;
      if (after->thread != op.thread) return none;
      if (after->end >= op.end) return after->layer;
    }
    return none;
  }

  [[nodiscard]] bool is_forward(double begin, const Step& step) const {
    return begin >= step.begin && begin < std::min(step.end, step.backward);
  }

  [[nodiscard]] std::vector<Scope> named_scopes(const Step& step) const {
    std::vector<Scope> scopes;
    for (const Stretch& stretch : trace_.annotations) {
      if (!is_forward(stretch.begin, step)) continue;
      auto layer = by_name_.find(stretch.name);
      if (layer == by_name_.end()) layer = by_name_.find(std::string(last_part(stretch.name)));
      if (layer == by_name_.end()) continue;
      scopes.push_back({stretch.begin, stretch.end, stretch.thread, layer->second});
    }
    return scopes;
  }

  [[nodiscard]] std::vector<Scope> scopes_by_kind(const Step& step) {
    const std::vector<int> differentiated = roots_of_backward(step);
    std::vector<Scope> scopes;
    std::size_t attentions = 0;  // of the scopes
    const auto is_in_attention = [&](const Scope& scope) {
      return std::any_of(scopes.begin(), scopes.begin() + static_cast<std::ptrdiff_t>(attentions),
                         [&](const Scope& outer) {
                           return outer.thread == scope.thread && outer.begin <= scope.begin &&
                                  scope.end <= outer.end;
                         });
    };
    for (const KindNames& names : kinds) {
      std::vector<int> layers;
      for (std::size_t i = 0; i < network_.layers().size(); ++i) {
        if (is_one_of(models::name(network_.layers()[i].kind), names.kinds))
          layers.push_back(static_cast<int>(i));
      }
      if (layers.empty()) continue;
      std::vector<Scope> found = module_scopes(step, names);
      if (found.size() != layers.size()) {
        const std::vector<Scope> operators = operator_scopes(step, names, differentiated);
        if (operators.size() == layers.size() || found.empty()) found = operators;
      }
      const bool is_attention = names.kinds[0] == "attention";
      if (is_attention && found.empty()) found = unfused_attention(step);
      std::erase_if(found, is_in_attention);
      if (found.size() != layers.size()) {
        missed_.try_emplace(kinds_of(layers), layers.size(), found.size());
        continue;
      }
      std::stable_sort(found.begin(), found.end(),
                       [](const Scope& a, const Scope& b) { return a.begin < b.begin; });
      for (std::size_t i = 0; i < found.size(); ++i) {
        found[i].layer = layers[i];
        scopes.push_back(found[i]);
      }
      if (is_attention) attentions = scopes.size();
    }
    return scopes;
  }

  // "gelu", or "fully_connected and linear".
  [[nodiscard]] std::string kinds_of(const std::vector<int>& layers) const {
    std::vector<std::string_view> names;
    for (const int layer : layers) {
      const std::string_view kind = models::name(network_.layers()[to_size(layer)].kind);
      if (std::find(names.begin(), names.end(), kind) == names.end()) names.push_back(kind);
    }
    return fmt::format("{}", fmt::join(names, " and "));
  }

  [[nodiscard]] std::vector<Scope> module_scopes(const Step& step, const KindNames& names) const {
    std::vector<Scope> found;
    for (const Stretch& stretch : trace_.modules) {
      if (is_forward(stretch.begin, step) && is_one_of(module_class(stretch.name), names.modules))
        found.push_back({stretch.begin, stretch.end, stretch.thread, none});
    }
    return found;
  }

  // The outermost operators that backward goes through, in ascending order. Each is the last one to
  // have the sequence number of something in backward, since an operator that makes no gradient
  // shows the number of the next.
  [[nodiscard]] std::vector<int> roots_of_backward(const Step& step) const {
    std::unordered_map<double, std::pair<double, int>> last;  // begin and root, by sequence number
    for (const Operator& op : trace_.operators) {
      if (op.sequence < 0 || !is_forward(op.begin, step)) continue;
      const auto [entry, is_new] = last.try_emplace(op.sequence, op.begin, op.root);
      if (!is_new && op.begin >= entry->second.first) entry->second = {op.begin, op.root};
    }
    std::vector<int> roots;
    for (const Operator& op : trace_.operators) {
      if (!op.is_backward() || op.begin < step.backward || op.begin >= step.end) continue;
      const auto entry = last.find(op.sequence);
      if (entry != last.end()) roots.push_back(entry->second.second);
    }
    std::sort(roots.begin(), roots.end());
    return roots;
  }

  [[nodiscard]] std::vector<Scope> operator_scopes(const Step& step, const KindNames& names,
                                                   const std::vector<int>& differentiated) const {
    std::vector<Scope> found;
    for (std::size_t i = 0; i < trace_.operators.size(); ++i) {
      const Operator& op = trace_.operators[i];
      if (op.parent != none || !is_forward(op.begin, step) || !is_one_of(op.name, names.operators))
        continue;
      const bool counts =
          names.kinds[0] != "add" ||
          std::binary_search(differentiated.begin(), differentiated.end(), static_cast<int>(i));
      if (counts) found.push_back({op.begin, op.end, op.thread, none});
    }
    return found;
  }

  // A softmax between two products of batches of matrices, with all that runs from the first to the
  // second: what multi_head_attention_forward computes between its projections where no operator does
  // all of it.
  [[nodiscard]] std::vector<Scope> unfused_attention(const Step& step) const {
    constexpr std::array<std::string_view, 3> products = {"aten::bmm", "aten::baddbmm",
                                                          "aten::matmul"};
    std::vector<Scope> found;
    const Operator* product = nullptr;  // the last one
    const Operator* scores = nullptr;   // the product that a softmax is behind
    for (const Operator& op : trace_.operators) {
      if (op.parent != none || !is_forward(op.begin, step)) continue;
      if (product != nullptr && product->thread != op.thread) product = scores = nullptr;
      if (op.name == "aten::softmax") scores = product;
      if (!is_one_of(op.name, products)) continue;
      if (scores != nullptr) found.push_back({scores->begin, op.end, op.thread, none});
      product = scores == nullptr ? &op : nullptr;
      scores = nullptr;
    }
    return found;
  }

  const KinetoTrace& trace_;
  const models::Network& network_;
  std::map<std::string, int> by_name_;
  std::vector<double> kernel_us_;
  bool on_gpu_ = false;
  bool named_ = false;  // whether record_function names a layer in any step
  std::vector<std::vector<double>>
      forward_;  // of each layer, one for each step that it is found in
  std::vector<std::vector<double>> backward_;
  std::map<std::string, std::pair<std::size_t, std::size_t>> missed_;
  double backward_total_ = 0;
  PassTime forward_time_;
  PassTime backward_time_;
};

}  // namespace

void attribute_to_layers(const KinetoTrace& trace, const models::Network& network,
                         Imported& imported) {
  Attribution(trace, network).run(imported);
}

}  // namespace paceline::calibration

// Tests: tests/calibration/import_bare_trace_test.cc.
#include "calibration/import/autograd_order.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

namespace paceline::calibration {
namespace {

using Operator = KinetoTrace::Operator;
using Step = KinetoTrace::Step;

constexpr std::string_view engine = "autograd::engine::evaluate_function: ";

struct OperatorNodes {
  std::array<std::string_view, 2> operators;
  std::array<std::string_view, 4> nodes;   // exactly one of them for each operator
  std::array<std::string_view, 2> beside;  // those that run right behind it, if at all
};

constexpr std::array<OperatorNodes, 17> kinds = {{
    {{"aten::conv2d", "aten::convolution"},
     {"ConvolutionBackward", "MkldnnConvolutionBackward", "ThnnConv2DBackward",
      "SlowConv2DBackward"},
     {}},
    {{"aten::linear", "aten::addmm"},
     {"AddmmBackward", "MmBackward", "MkldnnLinearBackward", "LinearBackward"},
     {"TBackward", "UnsafeViewBackward"}},
    {{"aten::batch_norm", ""}, {"NativeBatchNormBackward", "CudnnBatchNormBackward"}, {}},
    {{"aten::relu", "aten::relu_"}, {"ReluBackward"}, {}},
    {{"aten::max_pool2d", ""}, {"MaxPool2DWithIndicesBackward", "MkldnnMaxPool2DBackward"}, {}},
    {{"aten::avg_pool2d", ""}, {"AvgPool2DBackward"}, {}},
    {{"aten::adaptive_avg_pool2d", ""},
     {"MeanBackward", "AdaptiveAvgPool2DBackward", "MkldnnAdaptiveAvgPool2DBackward"},
     {}},
    {{"aten::dropout", "aten::dropout_"}, {"MulBackward", "NativeDropoutBackward"}, {}},
    {{"aten::add", "aten::add_"}, {"AddBackward"}, {}},
    {{"aten::cat", "aten::concat"}, {"CatBackward"}, {}},
    {{"aten::flatten", ""}, {"ReshapeAliasBackward", "ViewBackward", "ReshapeBackward"}, {}},
    {{"aten::cross_entropy_loss", ""},
     {"NllLossBackward", "NllLoss2DBackward", "NllLossNdBackward"},
     {"LogSoftmaxBackward"}},
    {{"aten::layer_norm", ""}, {"NativeLayerNormBackward"}, {}},
    {{"aten::gelu", "aten::tanh"}, {"GeluBackward", "TanhBackward"}, {}},
    {{"aten::embedding", ""}, {"EmbeddingBackward"}, {}},
    {{"aten::bmm", "aten::baddbmm"}, {"BmmBackward", "BaddbmmBackward"}, {}},
    {{"aten::softmax", ""}, {"SoftmaxBackward"}, {}},
}};

template <std::size_t N>
bool holds(const std::array<std::string_view, N>& names, std::string_view name) {
  return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
}

// What runs under the engine, without its number: "ConvolutionBackward".
std::string_view node_name(const Operator& op) {
  std::string_view name = op.name;
  name.remove_prefix(engine.size());
  return without_number(name);
}

class Numbering {
 public:
  Numbering(KinetoTrace& trace, std::vector<std::string>& remarks)
      : trace_(trace), remarks_(remarks) {}

  void run() {
    for (const Step& step : trace_.steps()) {
      if (step.backward < step.end) number(step);
    }
    for (const auto& [operators, counts] : unknown_)
      remarks_.push_back(fmt::format(
          "{} is left out: an iteration has {} in forward and {} in backward, and nothing in this "
          "form of trace says which are whose",
          operators, counts.first, counts.second));
  }

 private:
  void number(const Step& step) {
    std::vector<std::size_t> forward;
    std::vector<std::size_t> backward;
    for (std::size_t i = 0; i < trace_.operators.size(); ++i) {
      const Operator& op = trace_.operators[i];
      if (op.parent != KinetoTrace::none || op.begin < step.begin || op.begin >= step.end) continue;
      if (op.name.starts_with(engine)) {
        backward.push_back(i);
      } else if (op.begin < step.backward) {
        forward.push_back(i);
      }
    }
    const auto earlier = [&](std::size_t a, std::size_t b) {
      return trace_.operators[a].begin < trace_.operators[b].begin;
    };
    std::stable_sort(forward.begin(), forward.end(), earlier);
    std::stable_sort(backward.begin(), backward.end(), earlier);
    for (const OperatorNodes& kind : kinds) match(kind, forward, backward);
  }

  void match(const OperatorNodes& kind, const std::vector<std::size_t>& forward,
             const std::vector<std::size_t>& backward) {
    std::vector<std::size_t> operators;
    for (std::size_t i = 0; i < forward.size(); ++i) {
      const std::string& name = trace_.operators[forward[i]].name;
      if (!holds(kind.operators, name)) continue;
      const bool counts_batches = name == "aten::add_" && i + 1 < forward.size() &&
                                  trace_.operators[forward[i + 1]].name == "aten::batch_norm";
      if (!counts_batches) operators.push_back(forward[i]);
    }
    std::size_t nodes = 0;
    for (const std::size_t i : backward) {
      if (holds(kind.nodes, node_name(trace_.operators[i]))) ++nodes;
    }
    if (nodes == 0 || operators.empty()) return;
    if (nodes != operators.size()) {
      for (const std::size_t i : operators) trace_.operators[i].backward_unknown = true;
      unknown_.try_emplace(kind.operators[0], operators.size(), nodes);
      return;
    }
    double sequence = -1;
    for (const std::size_t i : backward) {
      Operator& op = trace_.operators[i];
      const std::string_view name = node_name(op);
      if (holds(kind.nodes, name)) {
        sequence = next_++;
        op.sequence = sequence;
        trace_.operators[operators.back()].sequence = sequence;
        operators.pop_back();
      } else if (sequence >= 0 && holds(kind.beside, name)) {
        op.sequence = sequence;
      } else if (name != "torch::autograd::AccumulateGrad") {
        sequence = -1;
      }
    }
  }

  KinetoTrace& trace_;
  std::vector<std::string>& remarks_;
  double next_ = 0;
  std::map<std::string_view, std::pair<std::size_t, std::size_t>> unknown_;
};

}  // namespace

bool is_without_sequence_numbers(const KinetoTrace& trace) {
  return trace.bare && std::none_of(trace.operators.begin(), trace.operators.end(),
                                    [](const Operator& op) { return op.sequence >= 0; });
}

void number_by_order(KinetoTrace& trace, std::vector<std::string>& remarks) {
  Numbering(trace, remarks).run();
}

}  // namespace paceline::calibration

// Tests: tests/calibration/import_kineto_test.cc.
#include "calibration/import/kineto_trace.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "calibration/import/chrome_trace.h"
#include "calibration/import/table_text.h"
#include "models/base/limits.h"
#include "models/base/to_size.h"

namespace paceline::calibration {
namespace {

using Operator = KinetoTrace::Operator;

constexpr double us = 1e-6;
constexpr int none = KinetoTrace::none;

double number_of(const TraceEvent& event, std::string_view key) {
  const TraceArgument* argument = event.argument(key);
  return argument != nullptr && argument->number ? *argument->number : -1;
}

std::string text_of(const TraceEvent& event, std::string_view key) {
  const TraceArgument* argument = event.argument(key);
  return argument != nullptr ? argument->text : std::string();
}

std::optional<models::WireType> wire_of(std::string_view type) {
  if (type == "Float" || type == "float32") return models::WireType::fp32;
  if (type == "Half" || type == "float16") return models::WireType::fp16;
  if (type == "BFloat16" || type == "bfloat16") return models::WireType::bf16;
  return std::nullopt;
}

class Collector {
 public:
  void take(TraceEvent&& event) {
    if (event.phase != 'X') return;
    if (event.category.empty() && !place_bare(event)) return;
    const std::string& category = event.category;
    // Times count from the first event: microseconds since 1970 would leave a double no digits
    // behind the point.
    if (!first_us_) first_us_ = event.begin_us;
    event.begin_us -= *first_us_;
    const double begin = event.begin_us;
    const double end = begin + event.duration_us;
    if (event.name == "gloo:all_reduce" || event.name == "mpi:all_reduce") {
      KinetoTrace::Tally& reductions = trace.host_reductions[event.name];
      ++reductions.count;
      reductions.us += event.duration_us;
      return;
    }
    if (category == "Operator" && is_annotation(event)) {
      const int thread = thread_of(event);
      trace.annotations.push_back({begin, end, thread, std::move(event.name)});
    } else if (category == "cpu_op" || category == "Operator") {
      const int thread = thread_of(event);
      trace.operators.push_back(
          {begin, end, thread, std::move(event.name), number_of(event, "Sequence number"),
           number_of(event, "External id"), number_of(event, "Fwd thread id") > 0});
      trace.operators.back().input_sizes = std::move(event.input_sizes);
      trace.operators.back().concrete_inputs = std::move(event.concrete_inputs);
    } else if (category == "user_annotation") {
      const int thread = thread_of(event);
      trace.annotations.push_back({begin, end, thread, std::move(event.name)});
    } else if (category == "python_function") {
      if (!event.name.starts_with("nn.Module: ")) return;
      const int thread = thread_of(event);
      trace.modules.push_back({begin, end, thread, std::move(event.name)});
    } else if (category == "cuda_runtime" || category == "cuda_driver" || category == "Runtime") {
      const double correlation = number_of(event, "correlation");
      if (correlation > 0) trace.calls[correlation] = {begin, thread_of(event)};
    } else if (is_on_gpu(category)) {
      take_kernel(event);
    }
  }

  KinetoTrace trace;

 private:
  // Gives an event of a bare list the category that Kineto would give it. Operators have a namespace
  // ("aten::add"), or are a node of backward; all else is a record_function. False for what is left
  // out.
  bool place_bare(TraceEvent& event) {
    trace.bare = true;
    if (event.pid == "CUDA functions") {
      ++trace.unread_kernels;
      return false;
    }
    const bool is_operator = event.name.find("::") != std::string::npos ||
                             without_number(event.name).ends_with("Backward");
    event.category = is_operator ? "cpu_op" : "user_annotation";
    return true;
  }
  // Up to PyTorch 1.9, a record_function is an operator, such as "ProfilerStep#2".
  static bool is_annotation(const TraceEvent& event) {
    return event.name.find("::") == std::string::npos && number_of(event, "Sequence number") < 0;
  }
  static bool is_on_gpu(std::string_view category) {
    return category == "kernel" || category == "Kernel" || category == "gpu_memcpy" ||
           category == "Memcpy" || category == "gpu_memset" || category == "Memset";
  }

  // The collective that the name of a kernel tells: "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(...)",
  // before NCCL 2.19 "ncclKernel_AllReduce_RING_LL_Sum_float".
  static std::string collective_of(std::string_view kernel) {
    const std::size_t begin = kernel.find("Kernel_");
    if (begin == std::string_view::npos) return printable(kernel);
    kernel.remove_prefix(begin + std::string_view("Kernel_").size());
    std::string name;
    for (const char c : kernel.substr(0, kernel.find_first_of("_("))) {
      const bool is_upper = c >= 'A' && c <= 'Z';
      if (is_upper && !name.empty()) name += '_';
      name += is_upper ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return printable(name);
  }

  int thread_of(const TraceEvent& event) {
    return threads_.try_emplace(event.pid + '\n' + event.tid, static_cast<int>(threads_.size()))
        .first->second;
  }

  void take_kernel(const TraceEvent& event) {
    const bool is_communication = event.name.starts_with("nccl");
    (is_communication ? trace.communications : trace.kernels)
        .push_back({event.begin_us, event.duration_us, number_of(event, "External id"),
                    number_of(event, "correlation")});
    if (!is_communication) return;
    const std::string named = text_of(event, "Collective name");
    const std::string collective = named.empty() ? collective_of(event.name) : printable(named);
    const auto leave_out = [&](const std::string& what) {
      KinetoTrace::Tally& tally = trace.other_collectives[what];
      ++tally.count;
      tally.us += event.duration_us;
    };
    if (collective != "allreduce" && collective != "all_reduce") {
      leave_out(collective);
      return;
    }
    const double elements = number_of(event, "In msg nelems");
    const std::optional<models::WireType> wire = wire_of(text_of(event, "dtype"));
    const double ranks = number_of(event, "Group size");
    const Seconds time{event.duration_us * us};
    const bool is_sample = wire && elements >= 1 && ranks >= 2 && ranks <= 1e6 &&
                           time > Seconds{0} && within_limits(time) &&
                           within_limits(elements * models::element_size(*wire));
    if (!is_sample) {
      leave_out(collective + " without elements, dtype or group size");
      return;
    }
    const std::string type(models::name(*wire));
    ImportedCurve& curve = trace.reductions[{type, static_cast<int>(ranks)}];
    curve.what = fmt::format("NCCL all-reduce kernels, {}", type);
    curve.library = "nccl";
    curve.wire = wire;
    curve.ranks = Count::of(static_cast<int>(ranks));
    curve.samples.push_back({elements * models::element_size(*wire), time});
  }

  std::map<std::string, int> threads_;
  std::optional<double> first_us_;
};

// Whether the operator `inner` is inside `around`, which begins no later on the same thread. Bare
// lists cut times to whole microseconds, so that an inner operator may seem to end after the outer.
bool is_inside(const Operator& inner, const Operator& around, bool bare) {
  return bare ? inner.begin < around.end : inner.end <= around.end;
}

void nest(std::vector<Operator>& operators, bool bare) {
  std::stable_sort(operators.begin(), operators.end(), runs_before<Operator>);
  std::vector<int> open;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    Operator& op = operators[i];
    while (!open.empty()) {
      const Operator& around = operators[to_size(open.back())];
      if (around.thread == op.thread && is_inside(op, around, bare)) break;
      open.pop_back();
    }
    op.parent = open.empty() ? none : open.back();
    op.root = open.empty() ? static_cast<int>(i) : operators[to_size(open.back())].root;
    open.push_back(static_cast<int>(i));
  }
}

}  // namespace

int KinetoTrace::running(int thread, double time) const {
  const auto after =
      std::upper_bound(operators.begin(), operators.end(), std::pair(thread, time),
                       [](const std::pair<int, double>& at, const Operator& op) {
                         return at.first != op.thread ? at.first < op.thread : at.second < op.begin;
                       });
  int index = static_cast<int>(after - operators.begin()) - 1;
  while (index >= 0) {
    const Operator& op = operators[to_size(index)];
    if (op.thread != thread) return none;
    if (op.end >= time) return index;
    index = op.parent;
  }
  return none;
}

std::string_view without_number(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  return name.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

std::vector<KinetoTrace::Step> KinetoTrace::steps() const {
  constexpr double forever = std::numeric_limits<double>::infinity();
  std::vector<Step> steps;
  std::vector<double> ends;  // of what the optimizer does
  for (const Stretch& stretch : annotations) {
    if (stretch.name.starts_with("ProfilerStep#"))
      steps.push_back({stretch.begin, stretch.end, forever});
    if (stretch.name.starts_with("Optimizer.step#")) ends.push_back(stretch.end);
  }
  std::sort(steps.begin(), steps.end(),
            [](const Step& a, const Step& b) { return a.begin < b.begin; });
  if (steps.empty()) {
    std::sort(ends.begin(), ends.end());
    for (const double end : ends)
      steps.push_back({steps.empty() ? -forever : steps.back().end, end, forever});
  }
  if (steps.empty()) steps.push_back({-forever, forever, forever});
  for (const Operator& op : operators) {
    if (!op.is_backward()) continue;
    const auto after =
        std::upper_bound(steps.begin(), steps.end(), op.begin,
                         [](double begin, const Step& s) { return begin < s.begin; });
    if (after == steps.begin()) continue;
    Step& step = *(after - 1);
    if (op.begin < step.end) step.backward = std::min(step.backward, op.begin);
  }
  return steps;
}

KinetoTrace read_kineto_trace(std::string_view text, const std::string& file) {
  Collector collector;
  const TraceEnd end = read_chrome_trace(
      text, file, EarlyEnd::refused, [&](TraceEvent&& event) { collector.take(std::move(event)); });
  KinetoTrace& trace = collector.trace;
  trace.schema_version = end.schema_version;
  nest(trace.operators, trace.bare);
  std::stable_sort(trace.modules.begin(), trace.modules.end(), runs_before<KinetoTrace::Stretch>);
  return std::move(trace);
}

}  // namespace paceline::calibration

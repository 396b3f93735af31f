// What a trace of torch.profiler holds of layers and all-reduces, in memory: operators as they
// nest, stretches that are named, and what ran on a GPU. layer_attribution.h reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calibration/import/imported.h"

namespace paceline::calibration {

// Times are in microseconds after the first event of the file.
struct KinetoTrace {
  static constexpr int none = -1;

  // The operators of a thread nest. Each knows the one around it, and the outermost one, its root.
  struct Operator {
    double begin = 0;
    double end = 0;
    int thread = 0;
    std::string name;
    double sequence = -1;
    double external = -1;
    bool of_forward_thread = false;  // backward says which thread its forward ran on
    bool backward_unknown = false;   // which backward is its own cannot be told (autograd_order.h)
    int parent = none;
    int root = none;
    // Both are those of the TraceEvent.
    std::vector<std::vector<std::int64_t>> input_sizes = {};
    std::vector<std::string> concrete_inputs = {};

    // Up to PyTorch 1.8, nothing stands around "MmBackward".
    [[nodiscard]] bool is_backward() const {
      return of_forward_thread || name.starts_with("autograd::engine::evaluate_function: ");
    }
  };

  // An annotation or a module.
  struct Stretch {
    double begin = 0;
    double end = 0;
    int thread = 0;
    std::string name;
  };

  // A kernel, copy or memset on a GPU.
  struct Kernel {
    double begin = 0;
    double duration = 0;
    double external = -1;
    double correlation = -1;
  };

  struct RuntimeCall {
    double begin = 0;
    int thread = 0;
  };

  // An iteration: what begins from `begin` on and before `end`, its backward from `backward` on.
  struct Step {
    double begin;
    double end;
    double backward;
  };

  std::vector<Operator> operators;  // by thread, then begin
  std::vector<Stretch> annotations;
  std::vector<Stretch> modules;  // by thread, then begin
  std::vector<Kernel> kernels;
  std::vector<Kernel> communications;   // NCCL's kernels
  std::map<double, RuntimeCall> calls;  // by correlation
  // The all-reduces of NCCL, by type and ranks.
  std::map<std::pair<std::string, int>, ImportedCurve> reductions;
  struct Tally {
    std::size_t count = 0;
    double us = 0;
  };
  // NCCL's kernels that make no curve, by what they are: "reduce_scatter", "all_reduce without
  // elements, dtype or group size".
  std::map<std::string, Tally> other_collectives;
  // All-reduces of a library as the host saw them, by its name, such as "gloo:all_reduce". Their
  // types are not read, and only traces with shapes have their sizes.
  std::map<std::string, Tally> host_reductions;
  // The version that the file gives its own format.
  std::optional<double> schema_version;
  // Whether events have no categories: torch.autograd.profiler writes a bare list of them, and so
  // does torch.profiler where PyTorch is built without Kineto. Times are then whole microseconds.
  bool bare = false;
  std::size_t unread_kernels = 0;  // of a bare list, which does not say who launched them

  // The innermost operator that runs on a thread at a time, or none.
  [[nodiscard]] int running(int thread, double time) const;
  // The iterations, ascending: those that "ProfilerStep#N" marks; without such marks those that an
  // "Optimizer.step#" closes; without these all of the trace.
  [[nodiscard]] std::vector<Step> steps() const;
};

// The order in which operators, modules and what is found in them are kept.
template <class T>
bool runs_before(const T& a, const T& b) {
  if (a.thread != b.thread) return a.thread < b.thread;
  if (a.begin != b.begin) return a.begin < b.begin;
  return a.end > b.end;
}

// A name without the digits at its end: that of "AddBackward0" is "AddBackward".
[[nodiscard]] std::string_view without_number(std::string_view name);

// Reads a Chrome trace; `file` names it in errors. Throws InputError.
[[nodiscard]] KinetoTrace read_kineto_trace(std::string_view text, const std::string& file);

}  // namespace paceline::calibration

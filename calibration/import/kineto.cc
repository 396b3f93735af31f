// Tests: tests/calibration/import_kineto_test.cc.
#include "calibration/import/kineto.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "calibration/import/autograd_order.h"
#include "calibration/import/kineto_trace.h"
#include "calibration/import/layer_attribution.h"
#include "models/base/error.h"

namespace paceline::calibration {
namespace {

// The most iterations that a trace may have, since each is looked for among all events.
constexpr std::size_t most_steps = 1000;

}  // namespace

bool looks_like_kineto(std::string_view text) {
  constexpr std::size_t head = 1 << 20;
  text = text.substr(0, head);
  return text.find("\"traceEvents\"") != std::string_view::npos ||
         text.find("\"CPU functions\"") != std::string_view::npos ||
         text.find("\"aten::") != std::string_view::npos;
}

Imported parse_kineto(std::string_view text, const std::string& file,
                      const models::Network& network) {
  KinetoTrace trace = read_kineto_trace(text, file);
  if (trace.operators.empty() && trace.reductions.empty())
    throw InputError({file}, "there are no operators of PyTorch in this trace",
                     "profile with ProfilerActivity.CPU, and give what export_chrome_trace wrote");
  Imported imported{.tool = "torch.profiler", .version = trace.bare ? "without Kineto" : ""};
  if (trace.schema_version) imported.version = fmt::format("schema {}", *trace.schema_version);
  const std::size_t steps = trace.steps().size();
  if (steps > most_steps)
    throw InputError({file}, fmt::format("{} iterations", steps),
                     fmt::format("profile up to {}", most_steps));
  if (is_without_sequence_numbers(trace)) number_by_order(trace, imported.remarks);
  attribute_to_layers(trace, network, imported);
  if (imported.layers.empty() && trace.reductions.empty())
    throw InputError({file},
                     fmt::format("no layer of {} is found in this trace{}", network.name(),
                                 imported.remarks.empty() ? "" : "; " + imported.remarks.front()),
                     "give the trace of that network, or name its layers with record_function");
  for (auto& [key, curve] : trace.reductions) imported.curves.push_back(std::move(curve));
  if (!imported.curves.empty())
    imported.remarks.emplace_back("NCCL's kernels include waiting for the other ranks");
  for (const auto& [name, reductions] : trace.host_reductions)
    imported.remarks.push_back(
        fmt::format("{} times {}, {:.4g} ms in all, which make no curve; what waits for them is in "
                    "AccumulateGrad or behind backward",
                    reductions.count, name, reductions.us / 1e3));
  if (trace.unread_kernels > 0)
    imported.remarks.push_back(
        fmt::format("{} kernels on a GPU are left out, since this form of trace does not say who "
                    "launched them: times are the host's",
                    trace.unread_kernels));
  for (const auto& [collective, kernels] : trace.other_collectives)
    imported.remarks.push_back(fmt::format(
        "{} NCCL kernel{} of {}{}, {:.4g} ms in all, {} left out: only all-reduces that say their "
        "size make curves",
        kernels.count, kernels.count == 1 ? "" : "s", collective,
        steps > 1 && kernels.count % steps == 0
            ? fmt::format(" ({} an iteration)", kernels.count / steps)
            : "",
        kernels.us / 1e3, kernels.count == 1 ? "is" : "are"));
  return imported;
}

}  // namespace paceline::calibration

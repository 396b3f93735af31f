// Tests: tests/simulator/chrome_trace_test.cc.
#include "simulator/iteration/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace paceline::simulator {
namespace {

using Json = nlohmann::ordered_json;

constexpr int iterations_shown = 2;

// The communication streams come last.
int track_of(const Task& task) {
  return static_cast<int>(task.resource) + 1 + task.stream;
}

Json metadata(const char* what, int track, Json args) {
  return {{"ph", "M"}, {"name", what}, {"pid", 0}, {"tid", track}, {"args", std::move(args)}};
}

std::string event_name(const models::NetworkWork& network, const Task& task) {
  switch (task.kind) {
    case TaskKind::forward:
    case TaskKind::backward:
      return fmt::format("{} {}", name(task.kind),
                         network.layers[static_cast<std::size_t>(task.index)].name);
    case TaskKind::cast:
    case TaskKind::pack:
    case TaskKind::all_reduce:
    case TaskKind::unpack:
      return fmt::format("{} bucket {}", name(task.kind), task.index);
    case TaskKind::update:
      return task.index < 0 ? std::string("update") : fmt::format("update bucket {}", task.index);
    case TaskKind::read:
    case TaskKind::decode:
    case TaskKind::host_to_device:
      return std::string(name(task.kind));
  }
  return "unknown";
}

Json event_args(const models::NetworkWork& network, const models::Plan& plan, const Task& task,
                int iteration) {
  Json args = {{"iteration", iteration}, {"provenance", "predicted"}};
  if (task.kind == TaskKind::forward || task.kind == TaskKind::backward) {
    const models::LayerWork& layer = network.layers[static_cast<std::size_t>(task.index)];
    args["layer"] = layer.name;
    args["kind"] = layer.kind;
  } else if (task.resource == Resource::communication && task.index >= 0) {
    const models::Bucket& bucket = plan.buckets[static_cast<std::size_t>(task.index)];
    const models::PlannedSchedule& schedule =
        plan.schedules[static_cast<std::size_t>(bucket.schedule)];
    args["bucket"] = task.index;
    args["gradients"] = bucket.gradient_count;
    args["first_gradient"] =
        network.gradients[static_cast<std::size_t>(bucket.first_gradient)].name;
    args["bytes"] = plan.bytes(bucket).value();
    args["wire_type"] = name(plan.wire);
    args["schedule"] = schedule.algorithm;
    if (schedule.is_library) args["timed_by"] = "the library's own model";
    if (schedule.options.group_size > 0) args["group_size"] = schedule.options.group_size;
    if (schedule.options.segments > 0) args["segments"] = schedule.options.segments;
    if (schedule.options.servers > 0) args["server_rank"] = schedule.options.first_server;
  }
  return args;
}

}  // namespace

std::string chrome_trace(const models::NetworkWork& network, const StrategyRun& run,
                         const TraceLabels& labels) {
  constexpr double us = 1e6;
  const std::vector<Task>& tasks = run.dag.tasks();
  Json events = Json::array();
  events.push_back(metadata("process_name", 0, {{"name", "predicted: " + labels.title}}));
  for (const Resource resource : all_resources) {
    int streams = 0;
    for (const Task& task : tasks) {
      if (task.resource == resource) streams = std::max(streams, task.stream + 1);
    }
    for (int stream = 0; stream < streams; ++stream) {
      const int track = track_of({.resource = resource, .stream = stream});
      const std::string label = streams == 1 ? std::string(name(resource))
                                             : fmt::format("{} {}", name(resource), stream + 1);
      events.push_back(metadata("thread_name", track, {{"name", label}}));
      events.push_back(metadata("thread_sort_index", track, {{"sort_index", track}}));
    }
  }

  // Two periods from the start of a forward pass. What runs ahead, such as the copy of a batch,
  // is shown where it runs, with the iteration that it is for.
  Seconds origin{std::numeric_limits<double>::infinity()};
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].resource == Resource::compute) origin = std::min(origin, run.steady.start[i]);
  }
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const double ahead = (origin - run.steady.start[i]) / run.steady.period;
    const int first = std::max(0, static_cast<int>(std::ceil(ahead - 1e-9)));
    for (int iteration = first; iteration < first + iterations_shown; ++iteration) {
      const Seconds start =
          run.steady.start[i] - origin + static_cast<double>(iteration) * run.steady.period;
      events.push_back({{"ph", "X"},
                        {"name", event_name(network, tasks[i])},
                        {"cat", name(tasks[i].kind)},
                        {"pid", 0},
                        {"tid", track_of(tasks[i])},
                        {"ts", std::max(0.0, start.value() * us)},
                        {"dur", tasks[i].duration.value() * us},
                        {"args", event_args(network, run.plan, tasks[i], iteration)}});
    }
  }
  const Json trace = {{"displayTimeUnit", "ms"},
                      {"otherData",
                       {{"title", labels.title},
                        {"period_us", run.steady.period.value() * us},
                        {"provenance", "predicted"}}},
                      {"traceEvents", std::move(events)}};
  return trace.dump() + "\n";
}

}  // namespace paceline::simulator

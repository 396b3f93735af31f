// Tests: tests/simulator/timeline_test.cc.
#include "models/plan/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace paceline::models {

std::string_view name(TaskKind kind) {
  switch (kind) {
    case TaskKind::read:
      return "read";
    case TaskKind::decode:
      return "decode";
    case TaskKind::host_to_device:
      return "host to device";
    case TaskKind::forward:
      return "forward";
    case TaskKind::backward:
      return "backward";
    case TaskKind::cast:
      return "cast";
    case TaskKind::pack:
      return "pack";
    case TaskKind::all_reduce:
      return "all-reduce";
    case TaskKind::unpack:
      return "unpack";
    case TaskKind::update:
      return "update";
  }
  return "unknown";
}

std::string_view name(Resource resource) {
  switch (resource) {
    case Resource::storage:
      return "storage";
    case Resource::cpu:
      return "CPU";
    case Resource::copy_engine:
      return "copy engine";
    case Resource::compute:
      return "compute stream";
    case Resource::communication:
      return "communication stream";
  }
  return "unknown";
}

namespace {

using Json = nlohmann::json;

// The communication streams come last.
int track_of(Resource resource, int stream) {
  return static_cast<int>(resource) + 1 + stream;
}

Json metadata(const char* what, int process, int track, Json args) {
  return {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", track}, {"args", std::move(args)}};
}

std::string event_name(const NetworkWork& network, const TimelineEvent& event) {
  switch (event.kind) {
    case TaskKind::forward:
    case TaskKind::backward:
      return fmt::format("{} {}", name(event.kind),
                         network.layers[static_cast<std::size_t>(event.index)].name);
    case TaskKind::cast:
    case TaskKind::pack:
    case TaskKind::all_reduce:
    case TaskKind::unpack:
      return fmt::format("{} bucket {}", name(event.kind), event.index);
    case TaskKind::update:
      return event.index < 0 ? std::string("update") : fmt::format("update bucket {}", event.index);
    case TaskKind::read:
    case TaskKind::decode:
    case TaskKind::host_to_device:
      return std::string(name(event.kind));
  }
  return "unknown";
}

Json event_args(const NetworkWork& network, const Plan& plan, const TimelineEvent& event,
                const std::string& provenance) {
  Json args = {{"iteration", event.iteration}, {"provenance", provenance}};
  if (event.kind == TaskKind::forward || event.kind == TaskKind::backward) {
    const LayerWork& layer = network.layers[static_cast<std::size_t>(event.index)];
    args["layer"] = layer.name;
    args["kind"] = layer.kind;
  } else if (event.resource == Resource::communication && event.index >= 0) {
    const Bucket& bucket = plan.buckets[static_cast<std::size_t>(event.index)];
    const PlannedSchedule& schedule = plan.schedules[static_cast<std::size_t>(bucket.schedule)];
    args["bucket"] = event.index;
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

void add_tracks(const Timeline& timeline, int process, Json& events) {
  for (const Resource resource : all_resources) {
    int streams = 0;
    for (const TimelineEvent& event : timeline.events) {
      if (event.resource == resource) streams = std::max(streams, event.stream + 1);
    }
    for (int stream = 0; stream < streams; ++stream) {
      const int track = track_of(resource, stream);
      const std::string label = streams == 1 ? std::string(name(resource))
                                             : fmt::format("{} {}", name(resource), stream + 1);
      events.push_back(metadata("thread_name", process, track, {{"name", label}}));
      events.push_back(metadata("thread_sort_index", process, track, {{"sort_index", track}}));
    }
  }
}

}  // namespace

std::string chrome_trace(const NetworkWork& network, const Plan& plan,
                         const std::vector<Timeline>& timelines) {
  constexpr double us = 1e6;
  Json events = Json::array();
  for (std::size_t i = 0; i < timelines.size(); ++i) {
    const Timeline& timeline = timelines[i];
    const int process = static_cast<int>(i);
    events.push_back(metadata("process_name", process, 0,
                              {{"name", timeline.provenance + ": " + timeline.title}}));
    add_tracks(timeline, process, events);
    for (const TimelineEvent& event : timeline.events) {
      events.push_back({{"ph", "X"},
                        {"name", event_name(network, event)},
                        {"cat", name(event.kind)},
                        {"pid", process},
                        {"tid", track_of(event.resource, event.stream)},
                        {"ts", std::max(0.0, event.start.value() * us)},
                        {"dur", event.duration.value() * us},
                        {"args", event_args(network, plan, event, timeline.provenance)}});
    }
  }
  Json other = Json::object();
  if (!timelines.empty()) {
    other = {{"title", timelines.front().title},
             {"period_us", timelines.front().period.value() * us},
             {"provenance", timelines.front().provenance}};
  }
  const Json trace = {
      {"displayTimeUnit", "ms"}, {"otherData", other}, {"traceEvents", std::move(events)}};
  return trace.dump() + "\n";
}

}  // namespace paceline::models

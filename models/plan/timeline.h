// A timeline: which task ran when, on which resource. A prediction has one, and so has a run; both
// are written as the same Chrome trace JSON, so that they open side by side.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.h"
#include "models/network/work.h"
#include "models/plan/plan.h"

namespace paceline::models {

// Of a training iteration (Shi et al. 2018).
enum class TaskKind {
  read,            // a batch from storage
  decode,          // and augment, on the CPU
  host_to_device,  // the decoded batch
  forward,         // of one layer
  backward,        // of one layer; its gradients are there when it ends
  cast,            // gradients of a bucket to the wire type
  pack,            // a bucket's gradients into one buffer
  all_reduce,      // of a bucket
  unpack,          // and cast back
  update,          // optimizer step
};

// Each runs one task at a time; communication does on each of the plan's streams.
enum class Resource { storage, cpu, copy_engine, compute, communication };

inline constexpr std::array all_resources = {Resource::storage, Resource::cpu,
                                             Resource::copy_engine, Resource::compute,
                                             Resource::communication};

[[nodiscard]] std::string_view name(TaskKind kind);
[[nodiscard]] std::string_view name(Resource resource);

struct TimelineEvent {
  TaskKind kind = TaskKind::forward;
  Resource resource = Resource::compute;
  int stream = 0;  // of the communication streams
  // Of the layer (forward, backward) or the bucket (cast ... unpack, per-bucket update); -1 for
  // all.
  int index = -1;
  int iteration = 0;
  Seconds start;  // from the timeline's origin; not before it
  Seconds duration;
};

struct Timeline {
  std::string title;       // "resnet50 on jizhi-p40, 1024 ranks, hybrid, fp16"
  std::string provenance;  // "predicted" or "measured"
  int rank = 0;            // whose it is
  Seconds period;          // of an iteration
  std::vector<TimelineEvent> events;
};

// Chrome trace JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open.
//
// One process for each timeline (pid: its index), one named track for each resource and stream, one
// complete event ("X") for each event, in microseconds. Args carry the layer or bucket, bytes,
// schedule and provenance.
[[nodiscard]] std::string chrome_trace(const NetworkWork& network, const Plan& plan,
                                       const std::vector<Timeline>& timelines);

}  // namespace paceline::models

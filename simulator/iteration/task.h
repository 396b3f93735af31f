// Tasks of a training iteration, and the resources that they need (Shi et al. 2018).
#pragma once

#include <array>
#include <string_view>

#include "models/base/units.h"

namespace paceline::simulator {

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

struct Task {
  TaskKind kind = TaskKind::forward;
  Resource resource = Resource::compute;
  int index =
      0;  // of the layer (forward, backward) or of the bucket (cast ... unpack, per-bucket update)
  Seconds duration = {};
  int stream = 0;  // of the communication streams
};

// `to` starts when `from` is done: in the same iteration, or `lag` iterations before; at most 2.
struct Dependency {
  int from = 0;
  int to = 0;
  int lag = 0;
};

}  // namespace paceline::simulator

// Tasks of a training iteration as the DAG has them: what (models/timeline/timeline.h), for how long,
// and after which others.
#pragma once

#include "models/base/units.h"
#include "models/timeline/timeline.h"

namespace paceline::simulator {

using models::all_resources;
using models::Resource;
using models::TaskKind;

struct Task {
  TaskKind kind = TaskKind::forward;
  Resource resource = Resource::compute;
  int index =
      0;  // of the layer (forward, backward) or of the bucket (cast ... unpack, per-bucket update)
  Seconds duration = {};
  int stream = 0;  // of the communication streams
  bool runs_as_kernels =
      false;  // a transfer that kernels of the device do, not a host or copy engine
  double times =
      1;           // passes of a layer that it stands for, each with an equal part of the duration
  Bytes moved{0};  // by a transfer: of a bucket whose all-reduce moves as much
  int stage = 0;   // of a pipeline: whose rank runs it
  bool is_whole_pass = false;  // a pass of all layers of a chunk, of which `index` is the first
};

// A part of a task that stands for work of several kinds or layers.
struct TaskPart {
  TaskKind kind = TaskKind::forward;
  int index = 0;     // as Task::index
  double share = 1;  // of the task's duration
};

// `to` starts when `from` is done: in the same iteration, or `lag` iterations before; at most 2.
struct Dependency {
  int from = 0;
  int to = 0;
  int lag = 0;
};

}  // namespace paceline::simulator

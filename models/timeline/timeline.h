// A timeline: which task ran when, on which resource. A prediction and a run write theirs as the
// same Chrome trace JSON, so that they open side by side, and calibration/compare reads both back
// to compare them.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.h"
#include "models/network/work.h"
#include "models/plan/plan.h"

namespace paceline::models {

// The tasks of a training iteration (Shi et al. 2018).
enum class TaskKind {
  read,            // read a batch from storage
  decode,          // decode and augment it on the CPU
  host_to_device,  // copy the decoded batch to the device
  forward,         // the forward pass of one layer
  backward,        // the backward pass of one layer; its gradients are there when it ends
  factor_a,        // K-FAC's factor A of one layer, from its inputs (models/plan/k_fac.h)
  factor_g,        // its factor G, from the gradients of its outputs; or F of a batch norm
  wait,            // a bucket waits until the system that its plan is of takes it (dispatch.h)
  negotiation,     // ranks agree on a bucket, or a system hands it over, before it travels
  cast,            // cast the gradients of a bucket to the wire type
  pack,            // copy a bucket's gradients into one buffer
  all_reduce,      // the all-reduce of a bucket
  unpack,          // copy a bucket's gradients out of the buffer, and cast them back
  reduce_scatter,  // of K-FAC's factors and gradients to the owners of the layers
  invert,          // the owner inverts the factors of one layer
  precondition,    // the owner preconditions the gradients of one layer
  all_gather,      // of the preconditioned gradients, or of sharded parameters
  exchange,        // what ranks of one sample exchange at the output of one layer (models/layout)
  send,            // activations, or their gradients, of one layer to another stage
  update,          // the optimizer's step
};

// What tasks run on. Each resource runs one task at a time; communication runs one on each stream.
enum class Resource { storage, cpu, copy_engine, compute, communication };

inline constexpr std::array all_resources = {Resource::storage, Resource::cpu,
                                             Resource::copy_engine, Resource::compute,
                                             Resource::communication};

[[nodiscard]] std::string_view name(TaskKind kind);
[[nodiscard]] std::string_view name(Resource resource);

struct TimelineEvent {
  TaskKind kind = TaskKind::forward;
  Resource resource = Resource::compute;
  int stream = 0;  // which communication stream; 0 on the other resources
  // The layer (forward, backward, factors, invert, precondition, exchange, send) or the bucket (cast to unpack,
  // reduce-scatter, all-gather, and the update of one bucket); -1 stands for all.
  int index = -1;
  int iteration = 0;
  Seconds start;  // from the timeline's origin; not before it
  Seconds duration;
};

// The 90 % interval of a predicted period.
struct PeriodInterval {
  Seconds low;
  Seconds high;

  bool operator==(const PeriodInterval&) const = default;
};

struct Timeline {
  std::string title;       // "resnet50 on jizhi-p40, 1024 ranks, hybrid, fp16"
  std::string provenance;  // "predicted" or "measured"
  int rank = 0;            // the rank that ran it
  Seconds period;          // of an iteration
  std::vector<TimelineEvent> events;
  int batch_per_rank = 0;                       // 0: not known
  std::optional<PeriodInterval> interval = {};  // of a prediction, where it is known
};

// What the indices of events stand for: the part of a network and its plan that a trace holds.
struct TracedLayer {
  std::string name;
  std::string kind;  // as LayerWork::kind

  bool operator==(const TracedLayer&) const = default;
};

struct TracedBucket {
  int gradients = 0;
  std::string first_gradient;
  int ready_after = 0;   // the layer whose backward pass completes it
  Bytes bytes;           // on the wire
  std::string schedule;  // name of the algorithm, or of the library
  bool is_library = false;
  int group_size = 0;  // 0 where the schedule takes none; so is `segments`
  int segments = 0;
  std::optional<int> server_rank;

  bool operator==(const TracedBucket&) const = default;
};

struct TracedJob {
  std::string network;
  std::string strategy;
  int ranks = 1;
  WireType wire = WireType::fp32;
  Overlap overlap = Overlap::wait_free;
  int streams = 1;
  std::vector<TracedLayer> layers;    // as NetworkWork::layers
  std::vector<TracedBucket> buckets;  // as Plan::buckets

  bool operator==(const TracedJob&) const = default;
};

inline constexpr std::string_view timeline_schema = "paceline.timeline/1";

[[nodiscard]] TracedJob traced_job(const NetworkWork& network, const Plan& plan);

struct TracedTimeline {
  TracedJob job;
  Timeline timeline;
};

// Chrome trace JSON (schema paceline.timeline/1), which Perfetto (ui.perfetto.dev) and
// chrome://tracing open.
//
// Each timeline is one process (pid: its index), each resource and stream one named track, and each
// event one complete event ("X"), whose start and end are whole nanoseconds, written in
// microseconds. Args carry the layer or bucket, bytes, schedule and provenance; otherData carries
// each timeline's title and job.
[[nodiscard]] std::string chrome_trace(const std::vector<TracedTimeline>& timelines);
// The same for timelines of one network and plan.
[[nodiscard]] std::string chrome_trace(const NetworkWork& network, const Plan& plan,
                                       const std::vector<Timeline>& timelines);

// Reads what chrome_trace wrote: the same values, events' times to a nanosecond. `file` names the
// text in errors. Throws InputError (file, where in the document, what would be right) for all
// else, also for texts with control characters, names of more than 256 bytes and titles of more
// than 8 KiB. O(text) time.
[[nodiscard]] std::vector<TracedTimeline> parse_chrome_trace(std::string_view text,
                                                             const std::string& file);

}  // namespace paceline::models

// A run beside its prediction, task by task: where they differ, and by how much.
//
// Tasks are matched by kind and by the name of their layer or bucket, and each is the median over
// the iterations of its timeline (iteration_times.h). A difference is the run's time less the
// prediction's, so that what took longer than predicted is positive. Nothing is fitted, and no time
// of one side stands in for one of the other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/compare/iteration_times.h"
#include "models/timeline/timeline.h"

namespace paceline::calibration {

// One task on both sides; on none or one of them it may not exist.
struct Compared {
  Spread run;
  Spread prediction;

  [[nodiscard]] std::optional<Seconds> difference() const;
  // Of the prediction; none where that is less than a nanosecond, which is what rounding leaves.
  [[nodiscard]] std::optional<double> relative() const;
};

struct ComparedPart {
  std::string part;  // "backward", "exposed communication", "between layers", ...
  Compared time;
};

struct ComparedLayer {
  std::string name;
  std::string kind;
  Compared forward;
  Compared backward;

  [[nodiscard]] Seconds difference() const;  // of both, as far as they can be compared
};

struct ComparedBucket {
  int index = 0;
  std::string first_gradient;
  int gradients = 0;
  Bytes bytes;
  Compared ready, wait, cast, pack, transfer, unpack, exposed;
};

// A kind of task, or a layer's, that only one side has.
struct OneSided {
  bool is_run = false;  // or is of the prediction
  std::string task;     // "pack", "forward conv1"
  int tasks = 0;        // in an iteration
  Seconds time;         // of all of them, in an iteration
};

struct ComparedSide {
  std::string title;
  std::string provenance;
  int rank = 0;
  int iterations = 0;
  int complete = 0;  // of them, those that another one follows
};

struct Comparison {
  ComparedSide run;
  ComparedSide prediction;
  models::TracedJob job;  // of the run
  Compared iteration;
  // Of the iteration, the largest difference first. They add up to it: the last one is what medians
  // leave, for those of parts do not add up to that of their sum.
  std::vector<ComparedPart> parts;
  std::vector<ComparedLayer> layers;    // the largest difference first
  std::vector<ComparedBucket> buckets;  // by exposed communication, then by transfer
  std::vector<OneSided> one_sided;
  std::vector<std::string> notes;  // where the two are not quite alike
};

// Throws InputError if they are not a run and a prediction (swapped, two of a kind), or not of one
// job: other layers, ranks, batch, wire type, overlap or buckets.
[[nodiscard]] Comparison compare(const models::TracedTimeline& run,
                                 const models::TracedTimeline& prediction);

// Both, moved so that an iteration of the run starts when the prediction's first one does: the one
// whose length is nearest to the median. The first event of all is at 0.
[[nodiscard]] std::vector<models::TracedTimeline> side_by_side(
    const models::TracedTimeline& run, const models::TracedTimeline& prediction);

}  // namespace paceline::calibration

// A run beside its prediction, task by task: where they differ, and by how much.
//
// Tasks are matched by kind and by the name of their layer or bucket. The time of each is the median
// over the iterations of its timeline (iteration_times.h). A difference is the run's time less the
// prediction's, so that what took longer than predicted is positive. Nothing is fitted, and a time
// that one side lacks is not taken from the other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/compare/iteration_times.h"
#include "models/timeline/timeline.h"

namespace paceline::calibration {

// The time of one task on both sides. It may be missing on one side, or on both.
struct Compared {
  Spread run;
  Spread prediction;

  [[nodiscard]] std::optional<Seconds> difference() const;
  // The difference as a share of the prediction; none where that is less than a nanosecond, which
  // rounding leaves.
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

  [[nodiscard]] Seconds difference() const;  // the sum over both passes that can be compared
};

struct ComparedBucket {
  int index = 0;
  std::string first_gradient;
  int gradients = 0;
  Bytes bytes;
  Compared ready, wait, cast, pack, transfer, unpack, exposed;
};

// A kind of task, or a task of a layer, that only one side has.
struct OneSided {
  bool is_run = false;  // the run has it; otherwise the prediction does
  std::string task;     // "pack", "forward conv1"
  int tasks = 0;        // their number in an iteration
  Seconds time;         // of all of them in an iteration
};

struct ComparedSide {
  std::string title;
  std::string provenance;
  int rank = 0;
  int iterations = 0;
  int complete = 0;  // iterations that another one follows
};

struct Comparison {
  ComparedSide run;
  ComparedSide prediction;
  models::TracedJob job;  // as the run has it
  Compared iteration;
  std::optional<models::PeriodInterval> interval;  // of the predicted iteration; 90 %
  // The parts of the iteration, the largest difference first. They add up to the iteration: the last
  // one holds what is left, since medians of parts do not add up to the median of their sum.
  std::vector<ComparedPart> parts;
  std::vector<ComparedLayer> layers;    // the largest difference first
  std::vector<ComparedBucket> buckets;  // in order of exposed communication, then of transfer
  std::vector<OneSided> one_sided;
  std::vector<std::string> notes;  // where the two are not quite alike
};

// Throws InputError if the two are not a run and a prediction (swapped, or two of a kind), or not of
// one job (other layers, ranks, batch, wire type, overlap or buckets).
[[nodiscard]] Comparison compare(const models::TracedTimeline& run,
                                 const models::TracedTimeline& prediction);

// Both timelines, moved so that an iteration of the run starts when the first one of the prediction
// does. It is the iteration whose length is nearest to the median. The first event of all is at 0.
[[nodiscard]] std::vector<models::TracedTimeline> side_by_side(
    const models::TracedTimeline& run, const models::TracedTimeline& prediction);

}  // namespace paceline::calibration

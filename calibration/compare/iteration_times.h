// How long the tasks of a timeline take in an iteration: the median over the iterations that the
// timeline holds, with the spread from the least to the most.
//
// An iteration lasts from the start of its first forward pass to that of the next one. Its parts
// are what the compute stream does in that time, so that they add up to it: forward, backward,
// update, and gaps. A gap before the update (with overlap "priority", before a forward pass) is
// exposed communication. Each instant of such a gap is put down to the bucket that is under way and
// began first, since the others queue behind it.
#pragma once

#include <map>
#include <vector>

#include "models/timeline/timeline.h"

namespace paceline::calibration {

// A median and its spread, which is no confidence interval (fit/statistics.h).
struct Spread {
  Seconds median;
  Seconds least;
  Seconds most;
  int iterations = 0;  // that have the task; where none has, all of this is 0

  [[nodiscard]] bool exists() const { return iterations > 0; }
};

// The spread of no values is 0 throughout.
[[nodiscard]] Spread spread(std::vector<Seconds> values);

struct LayerTimes {
  Spread forward;
  Spread backward;
};

struct BucketTimes {
  // From the start of the iteration to the end of the backward pass that completes the bucket, or to
  // its own first task where that starts before: a run hands over the gradients of a layer's weights
  // before it computes those of its input.
  Spread ready;
  Spread wait;  // from ready to the transfer, less cast and pack
  Spread cast;
  Spread pack;
  Spread transfer;  // the all-reduce, or the reduce-scatter of a sharded plan
  Spread unpack;
  Spread exposed;  // the time for which the compute stream waits for it
};

struct TaskTotal {
  Spread time;    // the sum over all tasks of the kind in an iteration
  int tasks = 0;  // their number in the iteration that has most
};

struct IterationTimes {
  int iterations = 0;
  int complete = 0;  // those that another one follows
  // These are over complete iterations; where there are none, over what there is up to the last
  // task.
  Spread iteration;
  Spread forward;  // forward, backward, update: busy time of the compute stream
  Spread backward;
  Spread update;
  Spread exposed;       // while a bucket is under way
  Spread exposed_idle;  // while none is
  Spread between_layers;
  Spread between_iterations;                     // after the update: the next batch, bookkeeping
  std::vector<LayerTimes> layers;                // as TracedJob::layers
  std::vector<BucketTimes> buckets;              // as TracedJob::buckets
  std::map<models::TaskKind, TaskTotal> totals;  // of kinds that the timeline has
};

// The timeline must have a forward pass, as check_same_job sees to. O(n log n) in the events.
[[nodiscard]] IterationTimes iteration_times(const models::TracedTimeline& traced);

// When the first forward pass of each iteration starts.
[[nodiscard]] std::map<int, Seconds> iteration_starts(const models::Timeline& timeline);

}  // namespace paceline::calibration

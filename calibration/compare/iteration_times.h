// How long the tasks of a timeline take in an iteration: of each, the median over the iterations
// that the timeline holds, and the least and the most.
//
// An iteration lasts from the start of its first forward pass to that of the next one. Its parts
// are what the compute stream does in that time, so that they add up to it: forward, backward,
// update, and gaps. A gap before the update (with overlap "priority", before a forward pass) is
// exposed communication. At each instant of it the bucket is to blame that is under way and began
// first; behind it the others queue.
#pragma once

#include <map>
#include <vector>

#include "models/timeline/timeline.h"

namespace paceline::calibration {

struct Spread {
  Seconds median;
  Seconds low;
  Seconds high;
  int iterations = 0;  // that have it; all is 0 where none has

  [[nodiscard]] bool exists() const { return iterations > 0; }
};

// The median of an even number of values is the mean of the two in the middle.
[[nodiscard]] Spread spread(std::vector<Seconds> values);

struct LayerTimes {
  Spread forward;
  Spread backward;
};

struct BucketTimes {
  // The end of the backward pass that completes it, after the start of the iteration; its own first
  // task where that starts before: a run hands over gradients of weights before it computes those
  // of the layer's input.
  Spread ready;
  Spread wait;  // from ready to the transfer, less cast and pack
  Spread cast;
  Spread pack;
  Spread transfer;  // the all-reduce
  Spread unpack;
  Spread exposed;  // while the compute stream waits for it
};

struct TaskTotal {
  Spread time;    // of all tasks of the kind in an iteration
  int tasks = 0;  // in the iteration that has most
};

struct IterationTimes {
  int iterations = 0;
  int complete = 0;  // those that another one follows
  // These are of complete iterations; with none, of what there is up to the last task.
  Spread iteration;
  Spread forward;  // this and the next two are of the compute stream
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

// Of a timeline that has a forward pass, as check_same_job sees to. O(n log n) in the events.
[[nodiscard]] IterationTimes iteration_times(const models::TracedTimeline& traced);

// When the first forward pass of each iteration starts.
[[nodiscard]] std::map<int, Seconds> iteration_starts(const models::Timeline& timeline);

}  // namespace paceline::calibration

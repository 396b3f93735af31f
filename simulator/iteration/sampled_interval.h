// The interval of an iteration time, by sampling everything that is not known at once: computation,
// links, the effects of a GPU cluster, and what none of these explains.
//
// Each figure has its value as the median and its interval as the middle 90 %. Links are slow or
// fast together. A sample is a sketch (sketch.h) of the iteration; the interval is that of the ratio
// of samples to the sketch at the stated figures, so that it is about the prediction itself.
#pragma once

#include <span>
#include <vector>

#include "models/cluster/effects.h"
#include "simulator/cost/losses.h"
#include "simulator/iteration/sketch.h"

namespace paceline::simulator {

// The times of all buckets with every figure of the links as stated, or at its fast or slow end.
struct BucketRange {
  std::vector<Seconds> stated;
  std::vector<Seconds> fast;
  std::vector<Seconds> slow;
};

struct UncertainIteration {
  const IterationSketch& sketch;  // of computation as stated, without effects
  BucketRange buckets;
  // Compute time with every figure of it at its fast or slow end, over that at the stated ones.
  double fast_compute = 1;
  double slow_compute = 1;
  const models::Effects& effects;
  int ranks = 1;
  int calibrated_ranks = 1;  // of which the compute time is known
  int ranks_per_node = 1;
  int multiprocessors = 0;
  BytesPerSecond memory;         // bandwidth
  BytesPerSecond bus_bandwidth;  // 0 on one rank
  double exposed = 0;            // exposed communication over the iteration time
};

// Factors on the stated iteration time.
struct IntervalFactors {
  double low = 1;
  double high = 1;
};

// The middle 90 % of 512 samples, which are the same for every iteration. low <= 1 <= high.
[[nodiscard]] IntervalFactors sampled_interval(const UncertainIteration& iteration);

}  // namespace paceline::simulator

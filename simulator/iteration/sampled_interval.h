// The interval of an iteration time, by sampling everything that is not known at once: computation,
// links, the effects of a GPU cluster, and what none of these explains.
//
// Each figure has its value as the median and its interval as the middle 90 %. Links are slow or
// fast together. A sample is a sketch (sketch.h) of the iteration; the interval is that of the ratio
// of samples to the sketch at the stated figures, so that it is about the prediction itself. Sample i
// of every iteration is drawn from the same i-th state of the world, so that ratios of iterations
// have samples, too: what slows both alike cancels.
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
  // Compute time beside collectives over that alone, in place of the estimate of losses.h.
  std::optional<Figure<double>> calibrated_beside = {};
  bool by_kernels = true;  // whether collectives run as kernels of the device (dag.h)
  double exposed = 0;            // exposed communication over the iteration time
};

// Factors on the stated iteration time.
struct IntervalFactors {
  double low = 1;
  double high = 1;
};

// The standard deviation of the logarithm of what no figure and no other effect explains of an
// iteration, `doublings` doublings of ranks beyond the calibrated ones, and with `exposed`
// communication as a share of it.
[[nodiscard]] double unexplained_deviation(const models::Effects& effects, double doublings,
                                           double exposed);

// What is not known of one iteration.
struct IterationSpread {
  // The iteration time of each of 512 samples over the stated one, as far as figures and effects
  // explain it.
  std::vector<double> factors;
  double doublings = 0;    // of ranks, beyond those that computation was calibrated on
  double exposed = 0;      // communication, as a share of the stated iteration
  double unexplained = 0;  // unexplained_deviation() of these

  // The middle 90 % of the samples with what is unexplained. low <= 1 <= high.
  [[nodiscard]] IntervalFactors interval() const;
};

[[nodiscard]] IterationSpread sampled_spread(const UncertainIteration& iteration);

// The middle 90 % of the ratio of two iteration times, over the stated ratio. What is unexplained of
// it is given, for that of the two iterations is largely the same. Both have as many samples.
[[nodiscard]] IntervalFactors ratio_interval(const IterationSpread& iteration,
                                             const IterationSpread& against, double unexplained);

}  // namespace paceline::simulator

// The interval of an iteration time, by sampling everything that is not known at once: computation,
// links, the effects of a GPU cluster, and what none of these explains.
//
// Each figure has its value as the median and its interval as the middle 90 %. Links are slow or
// fast together. A sample is a sketch (sketch.h) of the iteration; the interval is that of the ratio
// of samples to the sketch at the stated figures, so that it is about the prediction itself. Sample i
// of every iteration is drawn from the same i-th state of the world, so that ratios of iterations
// have samples, too: what slows both alike cancels.
//
// Buckets that are in flight together hide each other's latency, and how much of it is not known. It is a
// share h from 0 to 1 that is the same for all plans: with 0 an iteration is as stated, and with 1 its
// buckets travel one after the other. Nothing says which share is likelier than another, so that h is
// drawn uniformly, and an interval reaches from 0 to 1 whatever is drawn.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/base/figure.h"
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

// What the draws of iterations begin with, unless another seed is asked for.
inline constexpr std::uint64_t sampling_seed = 17;

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
  BytesPerSecond memory;     // bandwidth
  std::vector<Bytes> moved;  // by each bucket (Task::moved)
  // Compute time beside collectives over that alone, in place of the estimate of losses.h, and their bus
  // bandwidth.
  std::optional<Figure<double>> calibrated_beside = {};
  BytesPerSecond calibrated_bus{0};
  bool by_kernels = true;  // whether collectives run as kernels of the device (dag.h)
  double exposed = 0;      // exposed communication over the iteration time
  // How many times as long as in a state without stragglers the slowest rank computes, in each of the
  // sampled states; empty: 1. The stated iteration is then the mean over these.
  std::vector<double> slowest = {};
  std::uint64_t seed = sampling_seed;
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

inline constexpr int sampled_states = 512;

// What is not known of one iteration.
struct IterationSpread {
  // The iteration time of each of the sampled states over the stated one, as far as figures and effects
  // explain it.
  std::vector<double> factors;
  double doublings = 0;    // of ranks, beyond those that computation was calibrated on
  double exposed = 0;      // communication, as a share of the stated iteration
  double unexplained = 0;  // unexplained_deviation() of these
  // The iteration is longer by this share of the stated one where its buckets travel one after the
  // other. It is 0 where no latency is hidden, and at least -1.
  double unhidden = 0;
  std::uint64_t seed = sampling_seed;

  // The factors, each with this much of `unhidden` as is drawn. That share is the same for sample i of
  // every iteration.
  [[nodiscard]] std::vector<double> with_unhidden() const;
  // These, each with a draw of what is unexplained, likewise.
  [[nodiscard]] std::vector<double> samples() const;
  // The middle 90 % of the samples with what is unexplained, and 1 and 1 + unhidden. low <= 1 <= high.
  [[nodiscard]] IntervalFactors interval() const;
};

[[nodiscard]] IterationSpread sampled_spread(const UncertainIteration& iteration);

// Samples of an iteration of which no more is known than that every figure at its fast, or at its slow
// end makes it so long: one draw moves all figures together.
[[nodiscard]] IterationSpread spread_between(IntervalFactors ends,
                                             std::uint64_t seed = sampling_seed);

// The share of latency that streams would hide from each other and do not: the stated one, and its range.
[[nodiscard]] Figure<double> unhidden_latency();

// One state of the world.
struct SampledScenario {
  double compute = 1;         // compute time over that of a rank alone
  Interference interference;  // of a collective with computation
  double links = 0;           // how slow links are, in standard deviations
  Seconds launch;             // of one collective
};
struct SampledScenarios {
  SampledScenario stated;
  std::vector<SampledScenario> worlds;  // in the order of sampled_spread()'s factors
};
[[nodiscard]] SampledScenarios sampled_scenarios(const UncertainIteration& iteration);

// The middle 90 % of the ratio of two iteration times, over the stated ratio. What is unexplained of
// it is given, because that of the two iterations is largely the same. The ratios where nothing and where all
// of `unhidden` counts are in it, too. Both have as many samples.
[[nodiscard]] IntervalFactors ratio_interval(const IterationSpread& iteration,
                                             const IterationSpread& against, double unexplained);

}  // namespace paceline::simulator

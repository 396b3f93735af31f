// A sketch of an iteration: one compute stream and one in-order communication stream, as a closed
// recurrence. It takes about a microsecond where the DAG takes a hundred, so that an interval can
// be had by sampling what is not known.
//
// Layers run backward one after the other; a collective that is on its way beside them takes some of
// their time. A bucket starts when its last gradient is there and the bucket before it is done. The sketch knows nothing of input, streams beside the first and shared links, so a
// prediction takes only the ratio of two sketches from it.
//
// Where communication stands between the passes of layers, too, no such recurrence holds. A sketch is then
// a curve of periods of the DAG, in which all computation takes as long as stated, and all communication some
// times as long: if both take f times as long, so does the period.
#pragma once

#include <span>
#include <vector>

#include "models/network/work.h"
#include "models/plan/plan.h"
#include "simulator/cost/compute_time.h"

namespace paceline::simulator {

class IterationSketch {
 public:
  IterationSketch(const models::NetworkWork& network, const models::Plan& plan,
                  const ComputeTimes& compute);

  // `periods` are of DAGs with communication of rising factors, the first of them 0;
  // `communication` is the sum of all buckets' where the factor is 1.
  struct PeriodAt {
    double factor = 0;
    Seconds period;
  };
  IterationSketch(std::vector<PeriodAt> periods, Seconds computation, Seconds communication);

  // The period if computation takes `compute_factor` of its time, and bucket i takes buckets[i] of the
  // communication stream and lost[i] of the computation that is beside all of it, which is no more
  // than buckets[i]. By the recurrence of simulator/planner/stream_clock.h. O(buckets).
  [[nodiscard]] Seconds period(double compute_factor, std::span<const Seconds> buckets,
                               std::span<const Seconds> lost) const;

 private:
  [[nodiscard]] Seconds by_curve(double compute_factor, Seconds sent, Seconds lost) const;

  models::Overlap overlap_ = models::Overlap::wait_free;
  Seconds computed_;  // the end of the backward pass, if nothing travels
  Seconds update_;
  std::vector<Seconds> ready_;  // when each bucket may start, if nothing travels
  std::vector<PeriodAt> curve_;
  Seconds communication_;
};

}  // namespace paceline::simulator

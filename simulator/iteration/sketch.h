// A sketch of an iteration: one compute stream and one in-order communication stream, as a closed
// recurrence. It takes about a microsecond where the DAG takes a hundred, so that an interval can
// be had by sampling what is not known.
//
// Layers run backward one after the other; while a collective is on its way, computation takes
// `beside` times as long. A bucket starts when its last gradient is there and the bucket before it
// is done. The sketch knows nothing of input, streams beside the first and shared links, so a
// prediction takes only the ratio of two sketches from it.
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

  // The period if computation takes `compute_factor` of its time, `beside` times more while a
  // collective is on its way, and bucket i takes buckets[i]. O(layers + buckets).
  [[nodiscard]] Seconds period(double compute_factor, double beside,
                               std::span<const Seconds> buckets) const;

 private:
  // A stretch of the backward pass, and how many buckets may start at its end.
  struct Stretch {
    Seconds time;
    int buckets = 0;
  };
  models::Overlap overlap_;
  Seconds forward_;
  Seconds update_;
  std::vector<Stretch> backward_;
};

}  // namespace paceline::simulator

// One in-order communication stream beside a backward pass: the state of an iteration that planners
// compare plans by, in two numbers.
//
// Computation and traffic act on each other: a bucket waits for its last gradient, and while an
// all-reduce runs as kernels of the device, computation goes on at a share of its speed
// (simulator/iteration/compute_interference.h). Where all layers lose the same share c, a state after some
// buckets is
//   f  when the stream is done with them, counted from the start of the forward pass
//   B  how long traffic has slowed computation so far, in time under full load
// and a gradient that is there at r if nothing travels is there at r + c B. The next bucket takes
// `stream` of the stream, in which it is `traffic` of full load (TrafficLoad), which is no longer:
//   f' = max(f, r + c B) + stream,  B' = B + traffic.
// Both grow with both, so that of two states the one that is less in both is never worse. Both also grow
// with the time of each all-reduce, and so does the period: a faster link makes no plan slower. With C the
// end of the backward pass if nothing travels, the update starts at max(f, C + c B): where the stream
// is done before the backward pass is, all of its traffic has slowed that pass; elsewhere
// C + c B <= f, because the pass ended before f while B went on. The next forward pass waits for the
// update, which nothing runs beside, and so the period is that and the update.
//
// This is the period of the DAG (simulator/iteration/dag.h) with plan_timing's stretched(), where
// buckets overlap wait-free or not at all, one stream carries them in order, none waits, all layers
// lose the same share, and no input is slower (tests/simulator/fusion_test.cc, to 1e-9). With c = 0
// it is the recurrence of recurrence.h.
#pragma once

#include <algorithm>
#include <vector>

#include "models/network/work.h"
#include "models/plan/plan.h"
#include "simulator/cost/compute_time.h"

namespace paceline::simulator {

// Times in seconds, for inner loops.
struct StreamClock {
  std::vector<double> ready_s;  // of each gradient if nothing travels, in backward order
  // The start of the forward pass of each gradient's layer, counted from the start of the pass.
  std::vector<double> forward_s = {};
  double computed_s = 0;  // the end of the backward pass if nothing travels
  double update_s = 0;
  double slowing = 0;  // c: the share of its speed that computation loses under full load
  bool is_even =
      true;  // whether all layers lose that share; else it is the mean of the backward pass
  TrafficLoad load = {};  // how much of full load an all-reduce is
};

// What one bucket adds to a stream, in seconds.
struct BucketCost {
  double stream_s = 0;   // the stream is taken
  double traffic_s = 0;  // what it loads the device meanwhile, in time under full load
};

struct StreamState {
  double finish_s = 0;   // f
  double traffic_s = 0;  // B

  [[nodiscard]] StreamState after(const BucketCost& bucket, double ready_s, double slowing) const {
    return {std::max(finish_s, ready_s + slowing * traffic_s) + bucket.stream_s,
            traffic_s + bucket.traffic_s};
  }
  // When the update starts, if no bucket is left.
  [[nodiscard]] double done_s(const StreamClock& clock) const {
    return std::max(finish_s, clock.computed_s + clock.slowing * traffic_s);
  }
};

// The clock of buckets that may travel as `overlap` says. Without overlap they are ready at the end of
// the backward pass. Double-buffered plans have the clock of those without overlap: their period is
// the longer of computation and traffic, and both grow with the sum of all buckets. `slows` says
// whether the plan's all-reduces slow computation at all. O(layers + gradients).
[[nodiscard]] StreamClock stream_clock(const models::NetworkWork& network,
                                       const ComputeTimes& compute, models::Overlap overlap,
                                       bool slows);

}  // namespace paceline::simulator

// The plan of a strategy where time has a say in it: systems that look for gradients once a cycle.
//
// Horovod takes, every few milliseconds, the gradients that all ranks have, fuses them in their order
// up to theta, and sends what it has: it never waits for a buffer to fill (tensor-fusion.rst;
// FuseResponses in controller.cc). So its buckets depend on when gradients are there:
//   start(c)  = max(tick(c), finish(c - 1)), tick(c) = start(c - 1) + cycle, or a multiple of a cycle
//               later, when something is there; up to version 0.13.5 counted from finish(c - 1)
//   finish(c) = start(c) + the sum over its buckets of (negotiation + copies + all-reduce)
// A cycle takes all gradients that are there when it starts. The tensor that would take a bucket
// beyond theta opens the next one; a larger tensor travels by itself.
//
// An iteration is no multiple of the cycle, so that ticks stand anywhere in it. Of 33 evenly spread
// phases, the plan is that of the one whose last bucket is done nearest to the mean of all. Where
// nothing travels when the last gradient is there, that gradient waits half a cycle, which is the mean.
//
// What is left out: types that are fused apart, the look-ahead past them, and that TensorFlow counts a
// tensor as there when its operation is scheduled.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "models/network/work.h"
#include "models/plan/strategy.h"
#include "simulator/cost/compute_time.h"
#include "simulator/planner/bucket_timer.h"

namespace paceline::simulator {

// The buckets of cycles for gradients that are there at `times`, which never fall. `takes` is the time
// that a bucket keeps its stream, by its first gradient and its number of gradients. A bucket's wait
// is from its last gradient to the tick; `schedule` of each is 0.
// O(phases x (gradients + calls of takes)).
[[nodiscard]] std::vector<models::Bucket> buckets_of_cycles(
    std::span<const models::Gradient> gradients, std::span<const Seconds> times,
    const models::Dispatch& dispatch, Bytes theta, Bytes element_size,
    const std::function<Seconds(const models::Bucket&)>& takes);

// models::make_plan(), with the buckets and waits of the strategy's cycle where it has one, and
// MG-WFBP's buckets (merged_gradients.h), where there is more than one rank. `overlap`, if given, is that of the plan. Throws as make_plan() does.
[[nodiscard]] models::Plan make_timed_plan(const models::Strategy& strategy,
                                           const models::NetworkWork& network, int ranks,
                                           models::WireType wire,
                                           const models::Thresholds& thresholds,
                                           std::optional<models::Overlap> overlap,
                                           const ComputeTimes& compute, BucketTimer timer);

}  // namespace paceline::simulator

// The closed recurrence for one in-order communication stream, and what it takes.
//
//   finish(i) = max(ready(i), finish(i-1)) + T(bucket i)
//
// It is the makespan of the DAG's communication stream in one iteration that starts from rest
// (tests/simulator/dag_test.cc holds it against the DAG). The planner needs it millions of times.
#pragma once

#include <span>
#include <vector>

#include "models/network/work.h"
#include "models/plan/plan.h"
#include "simulator/cost/compute_time.h"

namespace paceline::simulator {

// When each gradient of the network is there, counted from the start of the forward pass.
[[nodiscard]] std::vector<Seconds> gradient_times(const models::NetworkWork& network,
                                                  const ComputeTimes& compute);

// When each bucket of the plan may travel, counted from the start of the forward pass.
[[nodiscard]] std::vector<Seconds> ready_times(const models::NetworkWork& network,
                                               const models::Plan& plan,
                                               const ComputeTimes& compute);

// finish(last) of the recurrence; 0 without buckets.
[[nodiscard]] Seconds last_finish(std::span<const Seconds> ready,
                                  std::span<const Seconds> durations);

// The order in which a stream that is never idle while a bucket is ready, and always takes the
// ready one with the least priority number, sends them. O(buckets^2).
[[nodiscard]] std::vector<int> priority_order(std::span<const Seconds> ready,
                                              std::span<const Seconds> durations,
                                              std::span<const int> priorities);

}  // namespace paceline::simulator

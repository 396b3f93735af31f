// The closed recurrence for one in-order communication stream, and what it takes.
//
//   finish(i) = max(ready(i), finish(i-1)) + T(bucket i)
//
// It is the makespan of the DAG's communication stream in one iteration that starts from rest
// (tests/simulator/dag_test.cc holds it against the DAG). The planner needs it millions of times.
#pragma once

#include <optional>
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

// Which buckets must be done before another may be handed over, where those that are handed over and
// not done hold at most a credit (models/plan/dispatch.h).
class CreditWindow {
 public:
  // `sizes` on the wire, in the order in which buckets travel.
  CreditWindow(std::span<const Bytes> sizes, std::optional<Bytes> credit)
      : sizes_(sizes), credit_(credit) {}
  // The position of the last bucket that must be done before that at `position` is handed over; -1
  // if there is none. Ask in rising order.
  [[nodiscard]] int room_after(std::size_t position);

 private:
  std::span<const Bytes> sizes_;
  std::optional<Bytes> credit_;
  std::size_t done_ = 0;  // buckets before this one must be done
  std::size_t counted_ = 0;
  Bytes held_;  // by those from done_ to the last position asked for
};

// What else decides in which order buckets travel: for each, how long it waits between when it is
// handed over and when it travels, and its size; and the credit. Without it, no bucket waits, and one
// is handed over when no other is on its way.
struct HandedOver {
  std::span<const Seconds> waits = {};
  std::span<const Bytes> sizes = {};
  Bytes credit{0};
};

// The order in which a stream that is never idle while a bucket is ready, and always takes the
// ready one with the least priority number, sends them. The choice is made when the bucket is handed
// over. O(buckets log buckets).
[[nodiscard]] std::vector<int> priority_order(std::span<const Seconds> ready,
                                              std::span<const Seconds> durations,
                                              std::span<const int> priorities,
                                              const HandedOver& handed_over = {});

}  // namespace paceline::simulator

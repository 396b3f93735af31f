// Lower bounds of an iteration that hold for every plan: any buckets, any schedules, any number of
// streams whose buckets share links in flight.
//
// The argument counts bytes. Each element that N nodes sum takes N - 1 sends between nodes to be summed
// and N - 1 to get back, so that all nodes together send 2 (N - 1) of each byte, and the busiest of them
// at least 2 (N - 1) / N of all buckets together. Its links carry a byte in no less than their bandwidth
// says, whatever travels beside it. With R(i) the ready time of gradient i, and S(i) the time that the
// busiest node's links are taken by gradients i to L - 1:
//  1. A bucket that has one of these gradients has its last gradient among them. It is therefore not ready
//     before R(i), is launched after that, and its first byte takes one latency besides:
//       the update starts no sooner than  max over i of R(i) + launch + alpha + S(i).
//  2. Where iterations overlap, each still sends its bytes:  the period is at least S(0).
// Traffic that slows computation makes gradients ready later, and not sooner.
//
// Ranks that start a bucket at their own times (ordered_collectives.h) can be late, by at most some d, which stays
// where iterations are alike. Seen from the first rank, the bytes of 1 are through when the last rank's
// iteration ends, which is d later than 1 says. But each rank waits for what the last one computes, d
// after its own R(L - 1). The sum of both does not have d in it, so that half of the sum is a bound:
//       the update starts no sooner than  max over i of (R(i) + S(i) + R(L - 1)) / 2.
// Latencies may be hidden there.
#pragma once

#include <cstdint>
#include <span>

#include "simulator/cost/communication_cost.h"
#include "simulator/planner/stream_clock.h"

namespace paceline::simulator {

// The least time that the busiest node, or rank where there is one node, needs for each byte of buckets
// that `ranks` sum, over all links that it has. 0 for one rank, for a cluster that a platform file
// describes, and where ranks of one node may sit on several.
[[nodiscard]] SecondsPerByte least_time_of_a_byte(const CommunicationCost& cost, int ranks);

// The latency of the first message of an all-reduce, at least. 0 for a transport that was calibrated,
// whose latencies may be hidden, and for a cluster that a platform file describes.
[[nodiscard]] Seconds least_latency(const CommunicationCost& cost, int ranks);

// What traffic is, for the bounds.
struct LeastTraffic {
  double s_per_byte = 0;        // least_time_of_a_byte()
  double before_s = 0;          // launch and latency of a bucket
  bool ranks_are_late = false;  // they start buckets at their own times
};

// No update starts sooner, where it waits for all buckets. `sums` are those of element_sums().
// O(gradients).
[[nodiscard]] double least_start_of_update_s(const StreamClock& clock,
                                             std::span<const std::int64_t> sums,
                                             double element_bytes, const LeastTraffic& traffic);

// No period is shorter where a layer's forward pass waits for its own parameters only: from its forward
// pass to the end of its backward pass all layers behind it compute twice, and before its next forward
// pass its gradients and those of the layers before it travel. One stream also updates all parameters.
// O(gradients).
[[nodiscard]] double least_period_of_priorities_s(const StreamClock& clock,
                                                  std::span<const std::int64_t> sums,
                                                  double element_bytes, const LeastTraffic& traffic,
                                                  int streams);

}  // namespace paceline::simulator

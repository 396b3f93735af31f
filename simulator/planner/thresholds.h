// Thresholds for a strategy where the user named none: theta, eta and k.
#pragma once

#include <optional>
#include <string>

#include "models/network/work.h"
#include "models/plan/strategy.h"
#include "simulator/cost/compute_time.h"
#include "simulator/planner/bucket_timer.h"

namespace paceline::simulator {

// What the user asked for; the rest is chosen.
struct ThresholdRequest {
  std::optional<Bytes> fusion;    // theta, on the wire
  std::optional<Bytes> hybrid;    // eta, on the wire
  std::optional<int> group_size;  // k
  std::optional<int> segments = {};
  std::optional<int> rings = {};
  std::optional<int> servers = {};
  std::optional<models::ServerPlacement> placement = {};
  std::optional<int> streams = {};
};

// k for a strategy that takes one, on nodes of so many ranks.
[[nodiscard]] int default_group(const models::Strategy& strategy, int ranks, int ranks_per_node);

// Chosen is, for what was not asked for:
//  - k: for the three-phase hierarchical, the divisor of the ranks with the fewest steps
//    (models::default_group_size); for multi-ring and what scatters, the ranks of a node where
//    those divide the ranks; else models::default_row_length;
//  - servers: one for each node;
//  - segments: of the powers of two up to 256, the one with which the largest gradient is fastest;
//  - eta: the bucket size at which ring becomes faster than hierarchical, to 0.1%; all sizes up
//    to the whole network where it never does;
//  - theta: of 0 and the powers of two from 64 KiB to 256 MiB, the largest whose last_finish() of
//  the
//    recurrence is within 0.1% of the earliest: fewer collectives depend less on an exact latency.
//    Strategies that do not fuse by default get 0.
// Throws InputError if k does not divide the ranks.
[[nodiscard]] models::Thresholds resolve_thresholds(const models::Strategy& strategy,
                                                    const ThresholdRequest& asked,
                                                    const models::NetworkWork& network, int ranks,
                                                    models::WireType wire,
                                                    const ComputeTimes& compute, BucketTimer timer);

}  // namespace paceline::simulator

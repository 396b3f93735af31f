// The planner's choice of thresholds: theta, eta, k and what else a strategy leaves open.
//
// The user may name any of them; the rest is chosen so that the strategy's plan is fast on the
// cluster. models/plan/strategy.h then makes the plan.
#pragma once

#include <optional>
#include <string>

#include "models/network/work.h"
#include "models/plan/strategy.h"
#include "simulator/cost/compute_time.h"

namespace paceline::simulator {

class BucketTimer;

// What the user named. An empty field is left to the planner. Sizes are bytes on the wire.
struct ThresholdRequest {
  std::optional<Bytes> fusion = {};    // theta
  std::optional<Bytes> hybrid = {};    // eta
  std::optional<int> group_size = {};  // k
  std::optional<int> segments = {};
  std::optional<int> rings = {};
  std::optional<int> servers = {};
  std::optional<models::ServerPlacement> placement = {};
  std::optional<int> streams = {};
  // What strategies of other systems take (models/plan/dispatch.h); ours ignore it, but for
  // `through_host`.
  std::optional<Seconds> cycle = {};
  std::optional<models::HorovodDefaults> horovod = {};  // of the version that is named
  std::optional<Bytes> partition = {};
  std::optional<Bytes> credit = {};
  bool through_host = false;
  std::optional<int> server_machines = {};  // servers on machines of their own, so many
  std::optional<models::ServerTransport> transport = {};
  bool unnegotiated = false;  // ranks of Horovod do not agree before a cycle, as in a replay
  std::optional<int> factors_every = {};  // of K-FAC, whose owners are placed as `placement` says
};

// k for a strategy that takes one, on nodes of `ranks_per_node` ranks.
[[nodiscard]] int default_group(const models::Strategy& strategy, int ranks, int ranks_per_node);

// The thresholds of a strategy. What was not named is chosen as follows.
//  - k: the three-phase hierarchical all-reduce takes the divisor of the ranks that gives the fewest
//    steps (models::default_group_size). Other algorithms take the ranks of a node where these
//    divide the ranks, and else models::default_row_length (multi-ring: 1).
//  - servers: one for each node.
//  - segments: the power of two up to 256 with which the largest gradient is fastest.
//  - eta: the bucket size at which the algorithm for large buckets becomes faster than the one for
//    small buckets, to 0.1 %. It is the whole network's size where that never happens.
//  - theta: 0 and the powers of two from 64 KiB to 256 MiB are tried with the recurrence. Of those
//    whose last_finish() is within 0.1 % of the earliest, the largest is taken: a plan of fewer
//    collectives depends less on an exact latency. A strategy that does not fuse by default takes 0.
//  - eta of nccl-2.4: up to which NCCL 2.4 takes trees (src/init.cc, ncclTreeThreshold): over PCIe
//    10,000 bytes for each microsecond that its trees take less, 6 (p - 1) - 15 floor(log2 N) - 4 (g - 1)
//    of p ranks on N nodes of g; over NVLink 15,000 for each channel of 11 GB/s and all sizes between two
//    nodes. 0 on one node.
//  - strategies of other systems: their systems' defaults (models/plan/strategy.h), nothing searched.
//    A named theta is that of DDP's first bucket, too, as bucket_cap_mb is.
//  - theta of inductor: as merged_gradients.h says.
//  - K-FAC: owners are balanced, and factors refreshed in every iteration.
// Throws InputError if k does not divide the ranks.
[[nodiscard]] models::Thresholds resolve_thresholds(const models::Strategy& strategy,
                                                    const ThresholdRequest& asked,
                                                    const models::NetworkWork& network, int ranks,
                                                    models::WireType wire,
                                                    const ComputeTimes& compute, BucketTimer timer);

}  // namespace paceline::simulator

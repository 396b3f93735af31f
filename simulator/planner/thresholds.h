// The planner's choice of thresholds: theta, eta, k and what else a strategy leaves open.
//
// The user may name any of them; the rest is chosen so that the iteration of the strategy's plan is
// short, by the clock of stream_clock.h. models/plan/strategy.h then makes the plan. Whoever chooses
// thresholds (predict, scale, reproduce, tune) calls resolve_thresholds().
#pragma once

#include "simulator/planner/planning_job.h"

namespace paceline::simulator {

// k for a strategy that takes one, on nodes of `ranks_per_node` ranks, where nothing is searched: the
// three-phase hierarchical all-reduce takes the divisor of the ranks that gives the fewest steps
// (models::default_group_size). Other algorithms take the ranks of a node where these divide the
// ranks, and else models::default_row_length (multi-ring: 1).
[[nodiscard]] int default_group(const models::Strategy& strategy, int ranks, int ranks_per_node);

// The thresholds of a strategy. What was not named is chosen as follows.
//  - servers: one for each node.
//  - k, segments, eta and theta together: every divisor of the ranks as k; segments by powers of two
//    up to 256, from 16 on as long as the period falls; for each, every eta at which the algorithm
//    for small buckets stops being the faster one, and every theta (theta_search.h). A strategy that
//    does not fuse by default takes theta 0.
//    The best are found to 0.02 % by the step engine. Where another engine times the plan, the four
//    best ways within 3 % are timed by it, and the best of these is taken.
//    Of what is within 0.1 % of the best: default_group() if it is among them; then the largest power
//    of two from 64 KiB to 256 MiB as theta, because a plan of fewer collectives depends less on an exact
//    latency. Where none is, the roundest theta that makes the best buckets.
//  - eta of nccl-2.4: up to which NCCL 2.4 takes trees (src/init.cc, ncclTreeThreshold): over PCIe
//    10,000 bytes for each microsecond that its trees take less, 6 (p - 1) - 15 floor(log2 N) - 4 (g - 1)
//    of p ranks on N nodes of g; over NVLink 15,000 for each channel of 11 GB/s and all sizes between two
//    nodes. 0 on one node. Segments are those with which its largest tree bucket is fastest.
//  - strategies of other systems: their systems' defaults (models/plan/strategy.h), nothing searched.
//    A named theta is that of DDP's first bucket, too, as bucket_cap_mb is.
//  - theta of inductor: as merged_gradients.h says.
//  - K-FAC: owners are balanced, and factors refreshed in every iteration.
// Whatever the plan's streams and overlap are, the clock is that of one in-order stream; with
// priorities, that of wait-free overlap.
// Throws InputError if k does not divide the ranks.
[[nodiscard]] ChosenThresholds resolve_thresholds(const models::Strategy& strategy,
                                                  const ThresholdRequest& asked,
                                                  const PlanningJob& job,
                                                  const PlanningTimers& timers);

}  // namespace paceline::simulator

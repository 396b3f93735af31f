// The times of what a layout adds (simulator/cost/layout_times.h), and the ranks that are left to data
// parallelism.
//
// A tensor-parallel group has neighbouring ranks; a context-parallel group has every `tensor`-th rank.
// Experts are on neighbouring ranks, whose tokens travel exposed.
// All groups run their collectives at the same time. A stage sends a batch's activations over the links between
// its ranks and those of the next stage, each rank the part that it has.
#pragma once

#include "models/layout/rank_work.h"
#include "simulator/cost/compute_time.h"
#include "simulator/cost/layout_times.h"
#include "simulator/planner/group_timers.h"

namespace paceline::simulator {

// Returns the cluster as one data-parallel group sees it: a node has the group's ranks alone, with their part of its
// NICs. Stages are groups of nodes, where they fill nodes.
[[nodiscard]] RankGroup data_group(const models::Cluster& cluster, const models::Layout& layout,
                                   int ranks);

struct LayoutJob {
  const models::RankWork& work;
  const models::Layout& layout;
  const models::Stages& stages;
  GroupJob groups;  // on the whole cluster, with all ranks
  models::Precision precision = models::Precision::mixed;
  int batch_per_rank = 1;
  int batches = 1;
  Seconds launch;  // of a collective
  models::Recompute recompute = models::Recompute::none;
};

// `layers` are the times of a rank's layers.
[[nodiscard]] LayoutTimes layout_times(const LayoutJob& job, const std::vector<LayerTime>& layers);

}  // namespace paceline::simulator

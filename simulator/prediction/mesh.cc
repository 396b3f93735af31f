// Tests: tests/simulator/layout_test.cc.
#include "simulator/prediction/mesh.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "simulator/planner/layout_timers.h"

namespace paceline::simulator {
namespace {

// p0 in ranks of a data-parallel group: by default the fewest that fill a node.
int group_baseline(const PredictionRequest& whole) {
  const models::Layout& layout = whole.layout;
  const int together = layout.ranks_of_sample();
  const int wanted =
      whole.baseline_ranks.value_or(std::max(together, baseline_ranks(whole.cluster, whole.ranks)));
  if (whole.baseline_ranks && wanted % together != 0)
    throw InputError(
        {"--baseline"},
        fmt::format("{} ranks are no multiple of the {} of a sample", wanted, together),
        fmt::format("choose a multiple of {}", together));
  return wanted / together * layout.context;
}

// Experts' groups fill nodes, or share them out.
void check_experts(const PredictionRequest& whole) {
  const int of_group = whole.layout.expert_ranks();
  const int of_node = whole.cluster.ranks_per_node;
  const bool is_on_one_node = whole.ranks <= of_node || of_node % of_group == 0;
  if (is_on_one_node || of_group % of_node == 0) return;
  throw InputError(
      {"--expert"},
      fmt::format("{} ranks with different experts on nodes of {}", of_group, of_node),
      fmt::format("choose a divisor or a multiple of {}, or a cluster whose nodes have "
                  "as many ranks as the job uses of them",
                  of_node));
}

}  // namespace

Mesh::Mesh(const PredictionRequest& whole)
    : whole_(whole),
      work_(models::rank_work(whole.network, whole.layout)),
      stages_(models::stages_of(work_.network, whole.layout)),
      group_(data_group(whole.cluster, whole.layout, whole.ranks)) {
  models::check_layout(whole.layout, whole.ranks, whole.accumulate);
  check_experts(whole);
  if (whole.stragglers)
    throw InputError({"--spread"}, "no stragglers are simulated in a layout of several axes",
                     "leave out --spread, --slow-rank and --backup, or the layout");
  if (whole.profile != nullptr && group_.nic_share != 1)
    profile_ = with_nic_share(*whole.profile, group_.nic_share);
  if (stages_.stages > 1)
    for (models::Gradient& gradient : work_.network.gradients)
      gradient.chunk = stages_.chunk_of[to_size(gradient.layer)];
}

PredictionRequest Mesh::of_group() const {
  PredictionOptions options = whole_;
  options.baseline_ranks = group_baseline(whole_);
  return {options,
          work_.network,
          group_.cluster,
          profile_ ? &*profile_ : whole_.profile,
          group_.ranks,
          whole_.wire,
          whole_.stored_sample,
          whole_.time_budget,
          {},
          whole_.sampling_seed};
}

LayoutTimes Mesh::times(const std::vector<LayerTime>& layers, int group_ranks, Seconds launch,
                        const NcclTables* nccl, Bound bound) const {
  return layout_times({.work = work_,
                       .layout = whole_.layout,
                       .stages = stages_,
                       .groups = {whole_.cluster, whole_.profile, nccl, all_ranks(group_ranks),
                                  whole_.wire, bound, whole_.engine},
                       .precision = whole_.precision,
                       .batch_per_rank = whole_.batch_per_rank,
                       .batches = whole_.accumulate,
                       .launch = launch,
                       .recompute = whole_.recompute},
                      layers);
}

}  // namespace paceline::simulator

// A job whose ranks form a mesh (models/layout/layout.h), as its data-parallel groups see it: a job of fewer
// ranks on a cluster with fewer ranks in a node, whose network is a rank's share of the layers. What ranks of one
// sample exchange, and the stages of a pipeline, are in the compute times of that job (ComputeTimes::layout).
#pragma once

#include <optional>

#include "models/layout/rank_work.h"
#include "models/layout/stages.h"
#include "simulator/planner/group_timers.h"
#include "simulator/prediction/prediction_request.h"

namespace paceline::simulator {

class Mesh {
 public:
  // Keeps references to the request's network, cluster and profile. Throws InputError where the layout fits
  // neither the ranks nor the network.
  explicit Mesh(const PredictionRequest& whole);
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;

  [[nodiscard]] const PredictionRequest& whole() const { return whole_; }
  // The job of a data-parallel group; refers to this mesh.
  [[nodiscard]] PredictionRequest of_group() const;
  // Returns the times that the layout adds. `layers` are the times of a rank's layers, and a data-parallel group has
  // `group_ranks`.
  [[nodiscard]] LayoutTimes times(const std::vector<LayerTime>& layers, int group_ranks,
                                  Seconds launch, const NcclTables* nccl, Bound bound) const;
  // The number of all ranks where a data-parallel group has `group_ranks`.
  [[nodiscard]] int all_ranks(int group_ranks) const {
    return group_ranks * whole_.layout.ranks_of_copy();
  }

 private:
  PredictionRequest whole_;
  models::RankWork work_;
  models::Stages stages_;
  RankGroup group_;
  std::optional<models::Profile> profile_;  // with the group's share of each NIC
};

}  // namespace paceline::simulator

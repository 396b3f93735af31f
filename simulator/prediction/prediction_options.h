// How an iteration is predicted beside its network, its cluster and its ranks: the numbers that a question
// and a request to the predictor have in common.
//
// A new option of a prediction is a member here and an entry of the table of fields
// (simulator/question/question_fields.cc); whoever uses it reads it from the request.
#pragma once

#include <optional>
#include <string>

#include "models/base/precision.h"
#include "models/layout/layout.h"
#include "models/network/optimizer.h"
#include "models/network/recompute.h"
#include "models/plan/plan.h"
#include "simulator/cost/device_memory.h"
#include "simulator/engine/engine_kind.h"
#include "simulator/planner/planning_job.h"

namespace paceline::simulator {

// Batches of a rank that one update may take.
inline constexpr int most_accumulated = 1 << 16;

struct PredictionOptions {
  int batch_per_rank = 64;
  // K batches of a rank, whose gradients are added up on it, make one iteration: K forward and backward
  // passes, of which the last has the all-reduces beside it, and one update.
  int accumulate = 1;
  models::Precision precision = models::Precision::mixed;
  models::OptimizerChoice optimizer = {};  // as in MemoryRequest
  models::Recompute recompute = models::Recompute::none;
  models::Layout layout = {};  // of the ranks; a batch is then that of the ranks of a sample
  ThresholdRequest thresholds = {};
  // Takes the place of wait-free overlap, in strategies that have it.
  std::optional<models::Overlap> overlap = {};
  EngineKind engine = EngineKind::automatic;
  std::string nccl_version = {};  // of nccl_versions(); empty: the newest
  // Whether compute times are exactly as stated, as those of a replay, whose layers sleep. They then
  // have no interval, are the same beside traffic, and wait for no input.
  bool compute_is_exact = false;
  // p0, the number of ranks that efficiencies are against, from 1 to the number of ranks; by default
  // simulator::baseline_ranks(). Give the same to all predictions that are compared.
  std::optional<int> baseline_ranks = {};

  // Samples of an iteration of this many ranks.
  [[nodiscard]] double samples(int ranks) const {
    return static_cast<double>(ranks / layout.ranks_of_sample()) * batch_per_rank * accumulate;
  }
};

// The memory of a rank that runs a plan of the network with these options. Keeps references to both.
[[nodiscard]] inline MemoryRequest memory_request(const models::NetworkWork& network,
                                                  const models::Plan& plan,
                                                  const PredictionOptions& options) {
  return {network,           plan,
          options.precision, options.batch_per_rank,
          options.optimizer, options.recompute,
          options.accumulate};
}

}  // namespace paceline::simulator

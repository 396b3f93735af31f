// State that all predictions of one job share: engines, compute times and models of libraries. Each
// number of ranks and bound of the figures that is asked for has its own.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/cluster/effects.h"
#include "models/plan/strategy.h"
#include "simulator/cost/losses.h"
#include "simulator/cost/nccl_tables.h"
#include "simulator/prediction/mesh.h"
#include "simulator/prediction/prediction_request.h"
#include "simulator/prediction/predictor_setting.h"

namespace paceline::simulator {

class PreparedSchedules;

// The effects that count in predictions on the cluster: none where layers were calibrated beside
// traffic by a profile of our transport, or are slept as in a replay, because their times then
// include what is lost. `profile` may be null.
[[nodiscard]] const models::Effects* effects_of(const models::Cluster& cluster,
                                                const models::Profile* profile,
                                                bool compute_is_exact);

class JobSettings {
 public:
  // Keeps references to the request's network, cluster and profile. Throws as check() does.
  explicit JobSettings(const PredictionRequest& request);

  // The request; where ranks form a mesh (mesh.h), that of one data-parallel group.
  [[nodiscard]] const PredictionRequest& request() const { return request_; }
  // The request for all ranks, as it was asked.
  [[nodiscard]] const PredictionRequest& whole() const { return mesh_ ? mesh_->whole() : request_; }
  // The number of all ranks where a data-parallel group has `ranks`.
  [[nodiscard]] int all_ranks(int ranks) const { return mesh_ ? mesh_->all_ranks(ranks) : ranks; }
  // Takes the place of the request's thresholds from now on. What was prepared is kept.
  void take(const ThresholdRequest& thresholds) { request_.thresholds = thresholds; }

  [[nodiscard]] PredictorSetting& at(int ranks, Bound bound);
  // The same, and it has the model that times the strategy's all-reduces.
  [[nodiscard]] PredictorSetting& at(const models::Strategy& strategy, int ranks, Bound bound);
  // The same, and it has the model that times these all-reduces, as TuningRequest names them.
  [[nodiscard]] PredictorSetting& at(std::span<const std::string> all_reduces, int ranks,
                                     Bound bound);

  // The strategy as its runtime makes all-reduces there: where it leaves the choice to a library, that is
  // NCCL's from 2.4 on, which GPUs of 2020 and later run, and others whose version is named. What a runtime
  // of ours runs alone is the strategy's own: sleeping layers (compute_is_exact), several streams, and
  // copies through the host.
  [[nodiscard]] const models::Strategy& as_run(const models::Strategy& strategy) const;

  // effects_of() the request.
  [[nodiscard]] const models::Effects* effects() const;
  // The same, with ranks that do not differ where the request has a spread of its own.
  [[nodiscard]] std::optional<models::Effects> effects_of_ranks() const;
  // The bus bandwidth beside which computation was calibrated, in a job of this many ranks.
  [[nodiscard]] BytesPerSecond calibrated_bus(const ComputeTimes& alone,
                                              const CommunicationCost& cost, int ranks) const;
  // The samples of a rank in an iteration, which may have several batches.
  [[nodiscard]] double samples_per_rank() const {
    return static_cast<double>(request_.batch_per_rank) * request_.accumulate /
           request_.layout.context;
  }

 private:
  // The tables of the request's version of NCCL, or of the newest version.
  [[nodiscard]] const NcclTables& tables();
  // How much a collective slows computation, by the stated effects or as it was calibrated.
  [[nodiscard]] Interference interference(const ComputeTimes& alone, const CommunicationCost& cost,
                                          int ranks) const;
  [[nodiscard]] ComputeTimes slowest(const ComputeTimes& alone, const CommunicationCost& cost,
                                     int ranks) const;

  std::unique_ptr<const Mesh> mesh_;  // null where ranks are data-parallel alone
  PredictionRequest request_;
  std::vector<std::unique_ptr<PredictorSetting>> settings_;
  std::shared_ptr<PreparedSchedules> schedules_;
  std::optional<NcclTables> nccl_tables_;
};

}  // namespace paceline::simulator

// The prediction: what an iteration of a network on a cluster takes under each strategy.
//
// This is the simulator's front door: everything that `paceline predict` and `scale` print is in
// a Prediction, with what each number rests on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/base/figure.h"
#include "models/cluster/cluster.h"
#include "models/network/work.h"
#include "models/plan/plan.h"
#include "models/plan/strategy.h"
#include "models/profile/profile.h"
#include "simulator/cost/nccl_model.h"
#include "simulator/iteration/dag.h"
#include "simulator/iteration/plan_timing.h"
#include "simulator/iteration/steady_state.h"
#include "simulator/planner/thresholds.h"
#include "simulator/straggler/monte_carlo.h"
#include "simulator/straggler/summary.h"

namespace paceline::simulator {

struct PredictionRequest {
  const models::NetworkWork& network;
  const models::Cluster& cluster;
  const models::Profile* profile =
      nullptr;    // takes the place of the cluster's figures; may be null
  int ranks = 1;  // must fit the cluster
  int batch_per_rank = 1;
  models::Precision precision = models::Precision::fp32;
  models::WireType wire = models::WireType::fp32;
  ThresholdRequest thresholds = {};
  EngineKind engine = EngineKind::automatic;
  std::optional<models::Overlap> overlap = {};  // instead of wait-free
  Bytes stored_sample{0};                       // bytes of one sample on storage
  // Compute times are stated and not estimated: they have no interval, are the same beside traffic,
  // and have no input to wait for (a replay's, whose layers sleep).
  bool compute_is_exact = false;
  // Also simulates iterations with stragglers; thresholds are chosen without them.
  std::optional<MonteCarloRequest> stragglers = {};
};

// The time that tasks of one kind have on the critical path.
struct PathShare {
  TaskKind kind = TaskKind::forward;
  Seconds time;
};

// With stragglers; all other figures of a prediction are without.
struct StragglerPrediction {
  IterationSummary iteration;
  int counted_ranks = 1;  // whose gradients an update waits for
  PerSecond throughput;   // samples of the counted ranks in the mean iteration
};

struct StrategyPrediction {
  std::string name;
  models::WireType wire = models::WireType::fp32;
  models::Overlap overlap = models::Overlap::wait_free;
  models::Thresholds thresholds;
  int buckets = 0;
  Figure<Seconds> iteration;  // interval: every figure at its fast, or every one at its slow end
  PerSecond throughput;       // samples of all ranks
  double efficiency = 0;      // throughput(p) / (p / p0 * throughput(p0))
  int baseline_ranks = 1;     // p0: one full node, or 1 rank where p is less than that
  TimeSpent spent;
  std::vector<PathShare> critical_path;  // of one period, by kind of task
  std::string compute_source;
  EngineKind engine = EngineKind::step;  // that timed the all-reduces; never `automatic`
  // What they were timed by in words: "flow engine", or a library's own model. The latter has no
  // interval, and knows of no calibration.
  std::string timed_by;
  bool by_library_model = false;  // timed by another program's model (NCCL's), not by ours
  bool converged = true;
  std::optional<StragglerPrediction> stragglers;  // where they were asked for
};

// One strategy, with what the timeline needs.
struct StrategyRun {
  models::Plan plan;
  IterationDag dag;
  SteadyIteration steady;
  EngineKind engine = EngineKind::step;  // as in StrategyPrediction
  std::string timed_by;
};

// Shares what strategies have in common (engines, compute times). Use one in each thread.
class Predictor {
 public:
  // Keeps references to the request's network, cluster and profile.
  // Throws InputError if the ranks do not fit the cluster or the batch is not positive, or if slow
  // or backup ranks are not among the ranks.
  explicit Predictor(const PredictionRequest& request);

  // Thresholds are chosen with the step engine, whatever times the plan. Throws InputError if k
  // does not divide the ranks, or a schedule is too large for the engine; UnavailableError.
  [[nodiscard]] StrategyPrediction predict(const models::Strategy& strategy);
  // The run behind predict()'s stated value.
  [[nodiscard]] StrategyRun run(const models::Strategy& strategy);

 private:
  struct Setting;  // one number of ranks at one reading
  Setting& setting(int ranks, Reading reading);
  // ... with what the strategy's all-reduces are timed by.
  Setting& setting(const models::Strategy& strategy, int ranks, Reading reading);
  StrategyRun run(const models::Strategy& strategy, const models::Thresholds& thresholds,
                  Setting& setting) const;
  std::vector<BucketTimes> buckets_alone(const models::Plan& plan, TimingMethod method,
                                         Setting& setting) const;
  [[nodiscard]] StragglerPrediction with_stragglers(const IterationDag& dag) const;
  // What the request names, and what the planner chooses.
  models::Thresholds thresholds(const models::Strategy& strategy, Setting& at) const;
  models::Thresholds baseline_thresholds(const models::Strategy& strategy,
                                         const models::Thresholds& thresholds, int ranks) const;

  PredictionRequest request_;
  std::vector<std::shared_ptr<Setting>> settings_;
  std::optional<NcclTables> nccl_tables_;
};

// The number of ranks that efficiencies are against: one full node, or 1.
[[nodiscard]] int baseline_ranks(const models::Cluster& cluster, int ranks);

}  // namespace paceline::simulator

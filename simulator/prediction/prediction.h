// Predictions: how long an iteration of a network on a cluster takes under a strategy or a plan.
//
// This is the simulator's front door. A StrategyPrediction holds everything that `paceline predict`
// and `scale` print of a row, with what each number rests on.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "models/base/figure.h"
#include "models/plan/strategy.h"
#include "simulator/cost/device_memory.h"
#include "simulator/iteration/steady_state.h"
#include "simulator/planner/thresholds.h"
#include "simulator/prediction/uncertainty.h"
#include "simulator/prediction/utilization.h"
#include "simulator/straggler/summary.h"

namespace paceline::simulator {

class PreparedSchedules;
struct TunedPlan;  // tuned_plan.h, as is the next
struct TuningRequest;
struct TuningJob;    // tuning_job.h
struct Alternative;  // alternatives.h

// The time that tasks of one kind have on the critical path.
struct PathShare {
  TaskKind kind = TaskKind::forward;
  Seconds time;
};

// What stragglers make of an iteration. All other figures of a prediction are without stragglers.
struct StragglerPrediction {
  IterationSummary iteration;
  int counted_ranks = 1;  // the number of ranks whose gradients an update waits for
  PerSecond throughput;   // samples of the counted ranks in the mean iteration
  // This throughput as a share of p/p0 times the baseline's; the baseline has no stragglers.
  double efficiency = 0;
};

struct StrategyRun;

struct StrategyPrediction {
  std::string name;  // of the strategy
  // What the plan was made with; nothing where the plan was given.
  std::optional<models::Thresholds> thresholds;
  // Other k, or numbers of segments, with which the iteration is as long within 0.1 %.
  std::vector<int> alike_groups;
  std::vector<int> alike_segments;
  models::Plan plan;
  // Its interval is the middle 90 % of samples of everything that is not known
  // (sampled_interval.h); without effects (models/cluster/effects.h), its ends have every figure at
  // its fast, or every one at its slow end. Where several buckets are in flight together, both ends
  // also have the time in which they travel one after the other (IterationSpread::unhidden).
  Figure<Seconds> iteration;
  IterationSpread
      spread;  // what its interval is made from; without factors where there are no effects
  PerSecond throughput;                    // samples of all ranks
  std::optional<Utilization> utilization;  // of a network that reads sequences
  // throughput(p) / (p / p0 * throughput(p0)). The baseline is the same job on p0 ranks with the
  // plan that the planner chooses there for the same strategy, whatever thresholds were named for p.
  double efficiency = 0;
  int baseline_ranks = 1;  // p0
  TimeSpent spent;
  std::vector<PathShare> critical_path;  // of one period, by kind of task
  std::string compute_source;
  EngineKind engine = EngineKind::step;  // the engine that timed the all-reduces; never `automatic`
  // Messages that the flow engine would have followed, where the step engine timed this row in its
  // place to answer at once (TimeBudget::bounded); else 0.
  double not_followed = 0;
  // What timed the all-reduces, in words: "flow engine"; a library's calibrated curve, with whatever
  // of it is not the job's (library_curve.h); or what the library's own model chooses
  // (engine/nccl_practice.h).
  std::string timed_by;
  bool by_library_model = false;  // another program's model (NCCL's) chose and timed, in part
  // Why better links may make the row slower (better_links.h); empty where they do not.
  std::string better_links_may_slow;
  bool converged = true;  // whether a steady state was reached
  DeviceMemory memory;    // that a rank needs
  bool fits = true;       // the memory is at most the device's
  int largest_batch = 0;  // per rank, with which the memory would be at most the device's
  std::optional<StragglerPrediction> stragglers;  // where they were asked for
  std::optional<KfacTimes> k_fac;                 // of the strategy k-fac
  // The run behind the stated value, from which a timeline is made.
  std::shared_ptr<const StrategyRun> run;
};

// The samples behind a prediction's interval.
[[nodiscard]] SampledIteration sampled(const StrategyPrediction& prediction);

// A strategy that is left out of a table.
struct LeftOut {
  std::string name;
  models::WireType wire = models::WireType::fp32;
  std::string why;  // "its buckets travel together, and that takes 0.99 million messages to follow"
  std::string remedy;      // "--strategy parameter-server asks for it"
  bool takes_long = true;  // whether that is why, and not something else that `why` says
};

// Shares what strategies have in common (JobSettings). Use one in each thread.
class Predictor {
 public:
  // Keeps references to the request's network, cluster and profile. Throws as check() does.
  explicit Predictor(const PredictionRequest& request) : settings_(request) {}

  // Takes the place of the request's thresholds from now on. What was prepared is kept.
  void take(const ThresholdRequest& thresholds) { settings_.take(thresholds); }

  // Predicts the strategy's plan, with the thresholds that the request names and those that the
  // planner chooses for the rest (simulator/planner/thresholds.h).
  // Throws InputError if k does not divide the ranks, a schedule is too large for the engine, or the
  // strategy has not the overlap or the stragglers that are asked for; UnavailableError.
  [[nodiscard]] StrategyPrediction predict(const models::Strategy& strategy);
  // Predicts a plan as it is: the request's thresholds and overlap have no effect. The plan must be
  // for the request's network and ranks (models::check_plan), and of its wire type, by which a
  // library's curve is chosen. Throws as above.
  [[nodiscard]] StrategyPrediction predict(const models::Plan& plan);
  // The stated value of predict().iteration alone, in a fraction of the time.
  [[nodiscard]] Seconds iteration(const models::Strategy& strategy);
  // The time of a forward pass over a batch on every rank, with its input, as an evaluation has it.
  // Only the counts of correct samples are exchanged. Throws InputError as check() does.
  [[nodiscard]] Seconds forward_pass(int batch_per_rank);
  // Predicts a row of a table of many strategies. A strategy is left out if it has too many messages, or
  // lacks what is asked for and others may have.
  [[nodiscard]] std::variant<StrategyPrediction, LeftOut> row(const models::Strategy& strategy);
  // The best plan of one in-order stream that is found (tuned_plan.h). The request's thresholds have no
  // effect. Throws as predict() does.
  [[nodiscard]] TunedPlan tune(const TuningRequest& request);
  // Returns what the plan would lose by each choice in it that could be otherwise (alternatives.h).
  // `stop`, if given, is asked before each bucket.
  [[nodiscard]] std::vector<std::vector<Alternative>> alternatives(
      const models::Plan& plan, const std::function<bool()>& stop);
  // The plan in the sampled states that its interval would have in predict(). Where the request has
  // stragglers, each state has an iteration of theirs, too, the same for all plans, and the period is
  // the mean of these iterations. There are no backup ranks then.
  [[nodiscard]] SampledIteration sampled(const models::Plan& plan);
  // Tuned plans of the first `count` states of the world that the interval of `plan` is sampled from,
  // each once, by the planner's clock and the step engine (scenario_plans.h), of the all-reduces of `only`.
  // Where nothing is sampled, the plans with every figure at its fast, and at its slow end. With the
  // streams of `plan`, for which they are the best where none hides another's latency. `stop` is asked
  // before each.
  [[nodiscard]] std::vector<models::Plan> plans_of_worlds(const models::Plan& plan, int count,
                                                          const std::vector<std::string>& only,
                                                          const std::function<bool()>& stop);
  // The run behind the stated value of predict().
  [[nodiscard]] StrategyRun run(const models::Strategy& strategy);
  [[nodiscard]] StrategyRun run(const models::Plan& plan);

 private:
  StrategyPrediction predict(models::Plan plan, std::optional<ChosenThresholds> chosen);

  JobSettings settings_;
};

}  // namespace paceline::simulator

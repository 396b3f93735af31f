// How the all-reduces of a plan are timed, and their times in an iteration.
//
// Three parts, in this order: timing_method() chooses how, from the plan and the engine that was
// asked for; a PlanTimer gives every all-reduce of a DAG its time; and stretched() repeats that with
// the layers as slow as they are beside traffic, until the period stays.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "models/plan/plan.h"
#include "simulator/cost/compute_time.h"
#include "simulator/engine/collective_timer.h"
#include "simulator/engine/executor_engine.h"
#include "simulator/engine/network_engine.h"
#include "simulator/engine/prepare.h"
#include "simulator/iteration/dag.h"
#include "simulator/iteration/steady_state.h"
#include "simulator/iteration/timing_method.h"

namespace paceline::simulator {

// There are more messages to follow than a bounded time budget allows, and no other engine can time
// the plan. The engine follows them with an unlimited time budget.
class FollowingTakesLong : public TooManyMessages {
 public:
  using TooManyMessages::TooManyMessages;
};

// Whatever was asked for: there is not enough memory for the messages of all buckets at once.
class FollowingTakesTooMuch : public TooManyMessages {
 public:
  using TooManyMessages::TooManyMessages;
};

// Chooses by these rules, in this order:
//  1. No schedule travels (one rank, or a library's own all-reduces or servers only): there is nothing to
//     follow, and a library's model times its all-reduces.
//  2. The transport is calibrated, the executor engine is allowed and suits all schedules, the
//     update waits for all buckets, and our runtime can run the plan, or replay its cycles:
//     buckets_behind, by the executor engine.
//  3. The plan has more streams than one and more buckets than one: other_buckets, by the engine
//     that network_engine_kind() names.
//  4. Else nothing, by the most detailed of the engines that the schedules need. A plan of K-FAC has
//     its ring reduce-scatter and all-gather in the place of schedules.
// With a bounded time budget, the step engine takes the place of a flow engine that rule 4 chose where
// the plan has too many messages to follow; otherwise where it has more than most_followed_when_named.
// Rule 3 has no such substitute, nor has an engine that was asked for.
// Throws InputError as network_engine_kind() does; FollowingTakesLong with a bounded time budget where
// there are too many messages and no substitute; FollowingTakesTooMuch where rule 3 has more than
// most_followed_together; TooManyMessages where a schedule is too large for its engine.
[[nodiscard]] TimingMethod timing_method(const models::Plan& plan, CollectiveTimer& engine,
                                         TimeBudget time_budget = TimeBudget::unlimited);

// One of the two collectives of K-FAC: "reduce-scatter" or "all-gather".
[[nodiscard]] models::PlannedSchedule k_fac_collective(std::string_view algorithm, int ranks);

// Times the all-reduces of one plan by one method. An engine is made once, for all DAGs.
class PlanTimer {
 public:
  // Keeps a reference to the plan.
  PlanTimer(const models::Plan& plan, TimingMethod method, const CommunicationCost& cost);
  // The DAG with the time of each all-reduce in it. `dag` has the times of buckets alone, which order
  // them where they are in flight together.
  [[nodiscard]] IterationDag timed(IterationDag dag);

 private:
  const models::Plan& plan_;
  TimingMethod method_;
  std::optional<ExecutorEngine> executor_;   // where the method is buckets_behind
  std::unique_ptr<NetworkEngine> together_;  // where it is other_buckets
};

struct TimedIteration {
  IterationDag dag;
  SteadyIteration steady;
};

// An iteration of layers that messages slow down (compute_interference.h). `timed_with` gives the DAG
// where layers take these times. Layers that take longer start what travels later, and so the rule
// is applied again, until the period changes by less than 0.01 %, or ten times.
[[nodiscard]] TimedIteration stretched(
    TimedIteration iteration, const ComputeTimes& compute,
    const std::function<IterationDag(const ComputeTimes&)>& timed_with);

}  // namespace paceline::simulator

// Tests: tests/simulator/plan_timing_test.cc, tests/simulator/prediction_test.cc.
#include "simulator/iteration/plan_timing.h"

#include <fmt/core.h>

#include <cmath>
#include <set>
#include <utility>

#include "models/base/to_size.h"
#include "models/collective/catalogue.h"
#include "simulator/engine/effort.h"
#include "simulator/engine/prepare.h"
#include "simulator/iteration/compute_interference.h"
#include "simulator/iteration/in_flight.h"
#include "simulator/iteration/ordered_collectives.h"

namespace paceline::simulator {
namespace {

std::vector<models::Schedule> followed_schedules(const models::Plan& plan) {
  std::vector<models::Schedule> schedules;
  for (const models::PlannedSchedule& schedule : plan.schedules)
    if (schedule.has_steps()) schedules.push_back(schedule.schedule());
  return schedules;
}

bool update_waits_for_all(const models::Plan& plan) {
  return plan.overlap == models::Overlap::wait_free || plan.overlap == models::Overlap::none;
}

// A prediction is made at three bounds of the figures.
constexpr double readings = 3;

// messages(schedule) for each schedule of the plan; 0 where it has no steps.
template <class F>
std::vector<double> of_each_schedule(const models::Plan& plan, F messages) {
  std::vector<double> of_schedule;
  for (const models::PlannedSchedule& schedule : plan.schedules)
    of_schedule.push_back(schedule.has_steps() ? messages(schedule.schedule()) : 0);
  return of_schedule;
}

double followed_together(const models::Plan& plan, const CommunicationCost& cost) {
  // In flight with others, ranks are in equal positions for all schedules together, or not at all.
  const bool may_collapse = plan.schedules.size() == 1;
  const auto of_schedule = of_each_schedule(plan, [&](const models::Schedule& schedule) {
    return may_collapse ? followed_messages(schedule, cost) : message_count(schedule).all;
  });
  double followed = 0;
  for (const models::Bucket& bucket : plan.buckets)
    followed += of_schedule[to_size(bucket.schedule)];
  return readings * followed;
}

double followed_alone(const models::Plan& plan, const CommunicationCost& cost) {
  const auto of_schedule = of_each_schedule(
      plan, [&](const models::Schedule& schedule) { return followed_messages(schedule, cost); });
  std::set<std::pair<int, std::int64_t>> timed;  // buckets of one size take the same time
  double followed = 0;
  for (const models::Bucket& bucket : plan.buckets) {
    if (timed.emplace(bucket.schedule, bucket.elements).second)
      followed += of_schedule[to_size(bucket.schedule)];
  }
  return readings * followed;
}

FollowingTakesTooMuch takes_too_much(double followed) {
  return {fmt::format("its buckets travel together, and that takes {:.2g} million messages to "
                      "follow, in {:.2g} GB of memory",
                      followed / 1e6, followed / readings * bytes_of_a_followed_message / 1e9),
          "choose fewer ranks, or fewer and larger buckets by --theta"};
}

bool is_allowed(EngineKind asked, EngineKind kind) {
  return asked == EngineKind::automatic || asked == kind;
}

}  // namespace

TimingMethod timing_method(const models::Plan& plan, CollectiveTimer& engine,
                           TimeBudget time_budget) {
  const bool is_asked_for = engine.kind() != EngineKind::automatic;
  const bool is_limited = is_asked_for ? time_budget == TimeBudget::bounded_by_any_engine &&
                                             engine.kind() == EngineKind::flow
                                       : time_budget != TimeBudget::unlimited;
  const double most_followed = is_asked_for ? most_followed_when_asked : most_followed_in_time;
  const auto takes_long = [&](std::string_view what, double followed) {
    return FollowingTakesLong(
        fmt::format("{} takes {:.2g} million messages to follow", what, followed / 1e6),
        fmt::format("ask for it by --strategy {}", plan.strategy));
  };
  const std::vector<models::Schedule> schedules = followed_schedules(plan);
  if (plan.ranks > 1 && !schedules.empty()) {
    const bool by_executor =
        engine.cost().transport && update_waits_for_all(plan) &&
        (!plan.is_of_other_system() || plan.only_waits()) &&
        is_allowed(engine.kind(), EngineKind::executor) &&
        network_engine_kind(engine.kind(), schedules, engine.cost()) == EngineKind::executor;
    if (by_executor) return {Beside::buckets_behind, EngineKind::executor};
    if (plan.streams > 1 && plan.buckets.size() > 1) {
      const double followed = followed_together(plan, engine.cost());
      if (followed > readings * most_followed_together) throw takes_too_much(followed);
      if (is_limited && followed > most_followed)
        throw takes_long("its buckets travel together, and that", followed);
      return {Beside::other_buckets, network_engine_kind(engine.kind(), schedules, engine.cost())};
    }
  }
  TimingMethod method;
  for (const models::PlannedSchedule& schedule : plan.schedules) {
    if (schedule.has_steps()) method.engine = more_detailed(method.engine, engine.engine(schedule));
  }
  if (plan.uses<models::KfacUse>() != nullptr && plan.ranks > 1)
    method.engine = engine.engine(k_fac_collective("reduce-scatter", plan.ranks));
  if ((is_asked_for && !is_limited) || method.engine != EngineKind::flow) return method;
  const double followed = followed_alone(plan, engine.cost());
  if (followed <= (is_limited ? most_followed : most_followed_when_named)) return method;
  if (is_asked_for) throw takes_long("it", followed);
  return {Beside::nothing, EngineKind::step, followed};
}

PlanTimer::PlanTimer(const models::Plan& plan, TimingMethod method, const CommunicationCost& cost)
    : plan_(plan), method_(method) {
  if (method.beside == Beside::buckets_behind)
    executor_.emplace(followed_schedules(plan), cost,
                      std::llround(models::element_size(plan.wire).value()));
  if (method.beside == Beside::other_buckets)
    together_ = make_network_engine(method.engine, followed_schedules(plan), cost);
}

IterationDag PlanTimer::timed(IterationDag dag) {
  switch (method_.beside) {
    case Beside::nothing:
      break;
    case Beside::other_buckets:
      return with_buckets_in_flight(dag, plan_, *together_);
    case Beside::buckets_behind:
      return with_ordered_collectives(dag, plan_, *executor_);
  }
  return dag;
}

models::PlannedSchedule k_fac_collective(std::string_view algorithm, int ranks) {
  const models::ScheduleOptions options{.ranks = ranks};
  return {std::string(algorithm), options, models::collective_algorithm(algorithm).build(options)};
}

TimedIteration stretched(TimedIteration iteration, const ComputeTimes& compute,
                         const std::function<IterationDag(const ComputeTimes&)>& timed_with) {
  constexpr int most_rounds = 10;
  constexpr double period_stays = 1e-4;
  for (int round = 0; round < most_rounds; ++round) {
    const Seconds before = iteration.steady.period;
    ComputeTimes slowed = compute;
    slowed.layers = layers_beside_traffic(iteration.dag, iteration.steady, compute);
    iteration.dag = timed_with(slowed);
    iteration.steady = steady_state(iteration.dag);
    const double change = (iteration.steady.period - before).value();
    if (std::abs(change) <= period_stays * before.value()) break;
  }
  return iteration;
}

}  // namespace paceline::simulator

// The plans that predictions are of: thresholds that are chosen, tuned plans, and those of the baseline.
// Tests: tests/simulator/prediction_test.cc, tests/simulator/tuning_test.cc.
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "models/collective/algorithms.h"
#include "models/collective/catalogue.h"
#include "models/plan/tuned.h"
#include "simulator/cost/dispatch_cost.h"
#include "simulator/engine/effort.h"
#include "simulator/engine/prepared_schedules.h"
#include "simulator/iteration/bucket_times.h"
#include "simulator/iteration/plan_timing.h"
#include "simulator/iteration/prediction.h"
#include "simulator/iteration/predictor_setting.h"
#include "simulator/iteration/tuned_plan.h"
#include "simulator/iteration/tuning_job.h"
#include "simulator/iteration/ways/way_model.h"
#include "simulator/planner/cycles.h"

namespace paceline::simulator {
namespace {

// BytePS speaks what the NIC does; others what they always speak.
void take_transport(const models::Strategy& strategy, const models::Cluster& cluster,
                    ThresholdRequest& request) {
  if (!strategy.other || strategy.other->system != models::System::byteps) return;
  if (request.transport) return;
  request.transport = cluster.nic.protocol == models::Protocol::rdma ? models::ServerTransport::rdma
                                                                     : models::ServerTransport::tcp;
}

// Refuses a k that was named for all strategies of a table where following one of the strategy's
// all-reduces with it would keep the table waiting.
void check_group(const models::Strategy& strategy, const ThresholdRequest& asked, int ranks,
                 const CommunicationCost& cost) {
  const int group_size = *asked.group_size;
  for (const std::string_view algorithm : strategy.algorithms()) {
    const models::CollectiveAlgorithm& entry = models::all_reduce_algorithm(algorithm);
    const models::Schedule schedule = entry.build(models::taken_options(
        entry, {.ranks = ranks, .group_size = group_size, .rings = asked.rings.value_or(0)}));
    // A message of one ring shares links with those of all k.
    const double effort =
        followed_messages(schedule, cost) * (strategy.takes_rings() ? group_size : 1);
    if (effort > most_planned_in_time)
      throw FollowingTakesLong(
          fmt::format("its messages take long to follow with k = {}", group_size),
          fmt::format("ask for it by --strategy {}", strategy.name));
  }
}

}  // namespace

PlanningJob Predictor::planning_job(const models::Strategy& strategy,
                                    std::optional<models::Overlap> overlap, bool through_host,
                                    Setting& at) const {
  PlanningJob job{.network = request_.network, .ranks = at.ranks, .wire = request_.wire};
  // The same condition as in run(): layers of several ranks, whose times are not slept, go on at a
  // share of their speed beside kernels, or beside whatever travels.
  job.slows = at.ranks > 1 && !request_.compute_is_exact &&
              (!at.compute.beside_kernels_only || !through_host);
  job.clock =
      stream_clock(request_.network, at.compute, overlap.value_or(strategy.overlap), job.slows);
  job.earliest = stream_clock(request_.network, job.slows ? at.compute.shortest() : at.compute,
                              overlap.value_or(strategy.overlap), false);
  job.aside =
      bucket_aside(request_.wire, at.ranks, request_.precision, at.memory, at.engine.cost());
  if (at.ranks > 1) job.aside.fixed_s += at.launch.value();
  if (request_.time_budget != TimeBudget::unlimited) {
    job.most_prepared = most_planned_in_time;
    job.most_followed = most_planned_in_time;
  }
  return job;
}

PlanningTimers Predictor::planning_timers(Setting& at) const {
  return {at.alone_by_steps(), at.timer()};
}

ChosenThresholds Predictor::thresholds(const models::Strategy& strategy, Setting& at) const {
  ThresholdRequest asked = request_.thresholds;
  take_transport(strategy, request_.cluster, asked);
  if (request_.time_budget != TimeBudget::unlimited && asked.group_size && strategy.takes_group() &&
      !strategy.takes_segments())
    check_group(strategy, asked, at.ranks, at.engine.cost());
  return resolve_thresholds(strategy, asked,
                            planning_job(strategy, request_.overlap, asked.through_host, at),
                            planning_timers(at));
}

TunedPlan Predictor::tune(const TuningRequest& request) {
  return tune(request, request_.overlap,
              setting_of(request.all_reduces, request_.ranks, Bound::stated));
}

Predictor::Setting& Predictor::setting_of(std::span<const std::string> all_reduces, int ranks,
                                          Bound bound) {
  const bool is_library = all_reduces.size() == 1 && models::library_named(all_reduces.front());
  return is_library ? setting(models::strategy(all_reduces.front()), ranks, bound)
                    : setting(ranks, bound);
}

TuningJob Predictor::tuning_job(std::optional<models::Overlap> overlap, int streams, Setting& at) {
  const models::Strategy& strategy = models::tuned_strategy();
  TuningJob job{planning_job(strategy, overlap, false, at),
                planning_timers(at),
                overlap.value_or(strategy.overlap),
                streams,
                {},
                {},
                {}};
  if (job.overlap == models::Overlap::double_buffered || job.overlap == models::Overlap::priority)
    job.clock_differs = "iterations overlap";
  else if (!job.planning.clock.is_even)
    job.clock_differs = "traffic slows layers unevenly";
  else if (at.engine.cost().transport)
    job.clock_differs = "ranks start buckets at their own times";
  job.period = [&](const models::Plan& plan) { return run(plan, at).steady.period; };
  job.least_other = std::max({at.input.read, at.input.decode, at.input.host_to_device});
  return job;
}

TunedPlan Predictor::tune(const TuningRequest& request, std::optional<models::Overlap> overlap,
                          Setting& at) {
  // A library runs one collective of a communicator at a time.
  const bool is_library =
      request.all_reduces.size() == 1 && models::library_named(request.all_reduces.front());
  TuningJob job = tuning_job(overlap, is_library ? 1 : request_.thresholds.streams.value_or(1), at);
  if (request.unhidden > 0) {
    job.period = [&request, period = job.period](const models::Plan& plan) {
      models::Plan in_order = plan;
      in_order.streams = 1;
      const Seconds hidden = period(plan);
      return plan.streams == 1 ? hidden : hidden + request.unhidden * (period(in_order) - hidden);
    };
  }
  return simulator::tune(job, request);
}

std::vector<std::vector<Alternative>> Predictor::alternatives(const models::Plan& plan,
                                                              const std::function<bool()>& stop) {
  std::vector<std::string> only;
  if (const auto* library = plan.uses<models::Library>()) only.emplace_back(name(*library));
  Setting& at = setting_of(only, request_.ranks, Bound::stated);
  const TuningJob job = tuning_job(plan.overlap, plan.streams, at);
  return simulator::alternatives(job, make_candidates(job.planning, job.timers, only), plan, only,
                                 stop);
}

models::Plan Predictor::plan(const models::Strategy& strategy,
                             const models::Thresholds& thresholds) {
  Setting& at = setting(strategy, request_.ranks, Bound::stated);
  return make_timed_plan(strategy, request_.network, request_.ranks, request_.wire, thresholds,
                         request_.overlap, at.compute, at.planner());
}

// Thresholds that the user named for p ranks are not used on p0. Where they are bad for p0, they
// would slow the baseline and so make the efficiency better than it is. Overlap, streams and the
// placement on servers are the job's.
models::Plan Predictor::baseline_plan(const models::Strategy& strategy, const models::Plan& plan,
                                      int p0) {
  Setting& at = setting(strategy, p0, Bound::stated);
  if (models::is_tuned(strategy)) return tune({.stop = [] { return true; }}, plan.overlap, at).plan;
  ThresholdRequest open{
      .placement = request_.thresholds.placement,
      .horovod = models::HorovodDefaults{plan.dispatch.cycle,
                                         strategy.other ? strategy.other->fusion : Bytes{0},
                                         plan.dispatch.negotiation},
      .through_host = plan.dispatch.through_host};
  open.cycle = plan.dispatch.cycle;
  open.credit = plan.dispatch.credit;
  if (!strategy.traits().all_at_once) open.streams = plan.streams;
  model_of(plan).name_thresholds(plan, open);
  const models::Thresholds chosen =
      resolve_thresholds(strategy, open,
                         planning_job(strategy, plan.overlap, plan.dispatch.through_host, at),
                         planning_timers(at))
          .thresholds;
  models::Plan baseline = make_timed_plan(strategy, request_.network, p0, plan.wire, chosen,
                                          plan.overlap, at.compute, at.planner());
  baseline.overlap = plan.overlap;
  return baseline;
}

}  // namespace paceline::simulator

// Tests: tests/simulator/prediction_test.cc, tests/simulator/tuning_test.cc.
#include "simulator/prediction/job_plans.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "models/base/error.h"
#include "models/plan/tuned.h"
#include "simulator/cost/dispatch_cost.h"
#include "simulator/engine/effort.h"
#include "simulator/iteration/bucket_times.h"
#include "simulator/iteration/plan_timing.h"
#include "simulator/planner/cycles.h"
#include "simulator/prediction/strategy_run.h"
#include "simulator/prediction/ways/way_model.h"

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
    const models::PlannedSchedule planned = models::scheduled(
        algorithm, {.ranks = ranks, .group_size = group_size, .rings = asked.rings.value_or(0)});
    // A message of one ring shares links with those of all k.
    const double effort =
        followed_messages(planned.schedule(), cost) * (strategy.takes_rings() ? group_size : 1);
    if (effort > most_planned_in_time)
      throw FollowingTakesLong(
          fmt::format("its messages take long to follow with k = {}", group_size),
          fmt::format("ask for it by --strategy {}", strategy.name));
  }
}

}  // namespace

PlanningJob planning_job(const JobSettings& settings, const models::Strategy& strategy,
                         std::optional<models::Overlap> overlap, bool through_host,
                         PredictorSetting& at) {
  const PredictionRequest& request = settings.request();
  PlanningJob job{.network = request.network, .ranks = at.ranks, .wire = request.wire};
  // The same condition as in run_of(): layers of several ranks, whose times are not slept, go on at a
  // share of their speed beside kernels, or beside whatever travels.
  job.slows = at.ranks > 1 && !request.compute_is_exact &&
              (!at.compute.beside_kernels_only || !through_host);
  const models::Overlap policy = models::overlap_of(strategy, overlap);
  job.clock = stream_clock(request.network, at.compute, policy, job.slows);
  job.earliest =
      stream_clock(request.network, job.slows ? at.compute.shortest() : at.compute, policy, false);
  job.aside = bucket_aside(request.wire, at.ranks, request.precision, at.memory, at.engine.cost());
  if (at.ranks > 1) job.aside.fixed_s += at.launch.value();
  if (request.time_budget != TimeBudget::unlimited) {
    job.most_prepared = most_planned_in_time;
    job.most_followed = most_planned_in_time;
  }
  return job;
}

PlanningTimers planning_timers(PredictorSetting& at) {
  return {at.alone_by_steps(), at.timer()};
}

ChosenThresholds thresholds_of(const JobSettings& settings, const models::Strategy& strategy,
                               PredictorSetting& at) {
  const PredictionRequest& request = settings.request();
  ThresholdRequest asked = request.thresholds;
  if (request.layout.expert_parts() > 1 && strategy.sharded() == nullptr)
    throw InputError({"--strategy"},
                     fmt::format("{} sums the gradients of all experts over all ranks, which have "
                                 "different ones",
                                 strategy.name),
                     "choose zero1, zero2, fsdp or hsdp, or leave --expert out");
  take_transport(strategy, request.cluster, asked);
  if (request.time_budget != TimeBudget::unlimited && asked.group_size && strategy.takes_group() &&
      !strategy.takes_segments())
    check_group(strategy, asked, at.ranks, at.engine.cost());
  return resolve_thresholds(
      strategy, asked, planning_job(settings, strategy, request.overlap, asked.through_host, at),
      planning_timers(at));
}

TuningJob tuning_job(const JobSettings& settings, std::optional<models::Overlap> overlap,
                     int streams, PredictorSetting& at) {
  const models::Strategy& strategy = models::tuned_strategy();
  TuningJob job{planning_job(settings, strategy, overlap, false, at),
                planning_timers(at),
                models::overlap_of(strategy, overlap),
                streams,
                {},
                {},
                {}};
  if (job.overlap == models::Overlap::double_buffered || job.overlap == models::Overlap::priority)
    job.clock_differs = "iterations overlap";
  else if (!job.planning.clock.is_even)
    job.clock_differs = "traffic slows layers unevenly";
  else if (settings.request().layout != models::Layout{})
    job.clock_differs = "ranks of a sample exchange activations";
  else if (at.engine.cost().transport)
    job.clock_differs = "ranks start buckets at their own times";
  job.period = [&](const models::Plan& plan) { return run_of(settings, plan, at).steady.period; };
  job.least_other = std::max({at.input.read, at.input.decode, at.input.host_to_device});
  return job;
}

TunedPlan tune(const JobSettings& settings, const TuningRequest& request,
               std::optional<models::Overlap> overlap, PredictorSetting& at) {
  const models::Layout& layout = settings.request().layout;
  if (layout.pipeline > 1)
    throw InputError({"--pipeline"}, "buckets are tuned for one stage",
                     "leave it out, or let tune --layouts choose a layout");
  // A library runs one collective of a communicator at a time.
  const int streams = models::library_of(request.all_reduces)
                          ? 1
                          : settings.request().thresholds.streams.value_or(1);
  TuningJob job = tuning_job(settings, overlap, streams, at);
  if (request.unhidden > 0) {
    job.period = [&request, period = job.period](const models::Plan& plan) {
      models::Plan in_order = plan;
      in_order.streams = 1;
      const Seconds hidden = period(plan);
      return plan.streams == 1 ? hidden : hidden + request.unhidden * (period(in_order) - hidden);
    };
  }
  TunedPlan tuned = tune(job, request);
  tuned.plan.layout = layout;
  return tuned;
}

models::Plan plan_of(JobSettings& settings, const models::Strategy& strategy,
                     const models::Thresholds& thresholds) {
  const PredictionRequest& request = settings.request();
  PredictorSetting& at = settings.at(strategy, request.ranks, Bound::stated);
  models::Plan plan = make_timed_plan(strategy, request.network, request.ranks, request.wire,
                                      thresholds, request.overlap, at.compute, at.planner());
  plan.layout = request.layout;
  return plan;
}

// Thresholds that the user named for p ranks are not used on p0. Where they are bad for p0, they
// would slow the baseline and so make the efficiency better than it is. Overlap, streams and the
// placement on servers are the job's.
models::Plan baseline_plan(JobSettings& settings, const models::Strategy& strategy,
                           const models::Plan& plan, int p0) {
  const PredictionRequest& request = settings.request();
  PredictorSetting& at = settings.at(strategy, p0, Bound::stated);
  if (models::is_tuned(strategy))
    return tune(settings, {.stop = [] { return true; }}, plan.overlap, at).plan;
  ThresholdRequest open{
      .placement = request.thresholds.placement,
      .horovod = models::HorovodDefaults{plan.dispatch.cycle,
                                         strategy.other ? strategy.other->fusion : Bytes{0},
                                         plan.dispatch.negotiation},
      .through_host = plan.dispatch.through_host};
  open.cycle = plan.dispatch.cycle;
  open.credit = plan.dispatch.credit;
  if (!strategy.traits().all_at_once) open.streams = plan.streams;
  model_of(plan).name_thresholds(plan, open);
  const models::Thresholds chosen =
      resolve_thresholds(
          strategy, open,
          planning_job(settings, strategy, plan.overlap, plan.dispatch.through_host, at),
          planning_timers(at))
          .thresholds;
  models::Plan baseline = make_timed_plan(strategy, request.network, p0, plan.wire, chosen,
                                          plan.overlap, at.compute, at.planner());
  baseline.overlap = plan.overlap;
  baseline.layout = plan.layout;
  return baseline;
}

}  // namespace paceline::simulator

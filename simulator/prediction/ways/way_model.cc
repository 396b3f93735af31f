// Tests: tests/simulator/prediction_test.cc.
#include "simulator/prediction/ways/way_model.h"

#include <array>
#include <utility>

#include "models/base/to_size.h"
#include "simulator/cost/dispatch_cost.h"
#include "simulator/iteration/dag.h"
#include "simulator/iteration/steady_state.h"
#include "simulator/prediction/predictor_setting.h"

namespace paceline::simulator {

std::vector<BucketTimes> WayModel::times(const PlanAt& at) const {
  const models::Plan& plan = at.plan;
  PredictorSetting& setting = at.setting;
  const bool by_planners_engine = at.method.beside != Beside::nothing || at.method.not_followed > 0;
  const BucketTimer timer = by_planners_engine ? setting.alone_by_steps() : setting.timer();
  std::vector<BucketTimes> buckets;
  buckets.reserve(plan.buckets.size());
  for (const models::Bucket& bucket : plan.buckets) {
    BucketTimes times =
        bucket_times(plan, bucket, at.options.precision, setting.memory, timer.cost());
    if (plan.ranks > 1) {
      times.pack += setting.launch;
      set_transfer(at, bucket, timer, times);
    }
    add_dispatch(plan, bucket, timer.cost(), setting.bound, times);
    buckets.push_back(std::move(times));
  }
  return buckets;
}

void WayModel::set_transfer(const PlanAt& at, const models::Bucket& bucket,
                            const BucketTimer& timer, BucketTimes& times) const {
  if (at.method.beside != Beside::buckets_behind)
    times.all_reduce =
        timer.time(at.plan.schedules[to_size(bucket.schedule)], at.plan.bytes(bucket));
}

std::string WayModel::timed_by(const PlanAt& at) const {
  return described(at.method.engine);
}

ComputeTimes WayModel::with_tasks(const PlanAt& at, ComputeTimes compute) const {
  return simulator::with_tasks(std::move(compute), at.network, at.plan, at.setting.bound);
}

ComputeTimes WayModel::alone(const PlanAt& at) const {
  return with_tasks(at, at.setting.alone);
}

IterationSketch WayModel::sketch(const PlanAt& at, const ComputeTimes& alone,
                                 const std::vector<BucketTimes>& buckets) const {
  if (at.plan.layout != models::Layout{}) return sketch_by_curve(at, alone, buckets);
  return {at.network, at.plan, alone};
}

IterationSketch WayModel::sketch_by_curve(const PlanAt& at, const ComputeTimes& alone,
                                          const std::vector<BucketTimes>& buckets) const {
  constexpr std::array factors = {0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 6.0};
  std::vector<IterationSketch::PeriodAt> periods;
  for (const double factor : factors) {
    ComputeTimes compute = alone;
    compute.layout = with_communication(alone.layout, factor);
    compute.layout.passes = compute.layers;
    std::vector<BucketTimes> sent = buckets;
    for (BucketTimes& bucket : sent) scale_communication(bucket, factor);
    const IterationDag dag(at.network, at.plan, compute, sent, at.setting.input);
    periods.push_back({factor, steady_state(dag).period});
  }
  Seconds communication = alone.layout.communication();
  for (const BucketTimes& bucket : buckets) communication += on_stream(bucket, alone);
  return {std::move(periods), alone.total(), communication};
}

void WayModel::scale_communication(BucketTimes& bucket, double factor) const {
  bucket.all_reduce *= factor;
}

Bytes WayModel::moved(const PlanAt& at, const models::Bucket& bucket) const {
  return at.plan.bytes(bucket);
}

Seconds WayModel::on_stream(const BucketTimes& bucket, const ComputeTimes& /*alone*/) const {
  return bucket.total() + longest_on_lanes_in_turn(bucket.served());
}

void WayModel::name_thresholds(const models::Plan& /*plan*/, ThresholdRequest& /*asked*/) const {}

const WayModel& model_of(const models::Plan& plan) {
  static const WayModel by_schedules;
  // In the order of the alternatives of models::Way.
  static const std::array<const WayModel*, std::variant_size_v<models::Way>> models = {
      &by_schedules, &library_model(), &served_model(), &k_fac_model(), &sharded_model()};
  return plan.schedules.empty() ? by_schedules : *models[plan.schedules.front().way.index()];
}

}  // namespace paceline::simulator

// Sharded plans, whose collectives stand among the passes. Tests: tests/simulator/sharded_test.cc.
#include <utility>

#include "simulator/prediction/predictor_setting.h"
#include "simulator/prediction/ways/way_model.h"

namespace paceline::simulator {
namespace {

using models::Collective;

const models::ShardUse& use_of(const models::Plan& plan) {
  return *plan.uses<models::ShardUse>();
}

class ShardedModel : public WayModel {
 public:
  [[nodiscard]] std::vector<BucketTimes> times(const PlanAt& at) const override {
    const models::ShardUse& use = use_of(at.plan);
    GroupTimers& groups = *at.setting.groups;
    const Seconds launch = at.plan.ranks > 1 ? at.setting.launch : Seconds{0};
    const Bytes parameter = models::element_size(at.options.precision);
    const Bytes gradient = models::element_size(at.plan.wire);
    std::vector<BucketTimes> buckets;
    for (const models::Bucket& bucket : at.plan.buckets) {
      const auto elements = static_cast<double>(bucket.elements);
      ShardTimes times;
      times.gathered = elements * parameter;
      times.reduced = elements * gradient;
      times.replicated = times.reduced / use.shards;
      if (use.shards > 1) {
        times.gather =
            launch + groups.in_shards(use.shards, Collective::all_gather, times.gathered);
        times.reduce =
            launch + groups.in_shards(use.shards, Collective::reduce_scatter, times.reduced);
        times.copy_out = 2 * times.gathered / at.setting.memory;
        times.copy_in = (times.gathered + times.reduced) / at.setting.memory;
      }
      if (at.plan.ranks > use.shards)
        times.all_reduce =
            launch + groups.in_replicas(use.shards, Collective::all_reduce, times.replicated);
      buckets.emplace_back().by_way = times;
    }
    return buckets;
  }

  [[nodiscard]] std::string timed_by(const PlanAt& at) const override {
    return at.setting.groups->described(use_of(at.plan).shards);
  }

  [[nodiscard]] ComputeTimes with_tasks(const PlanAt& at, ComputeTimes compute) const override {
    return sharded_compute(std::move(compute), use_of(at.plan));
  }

  // A sketch by a curve reads the sum over all buckets alone, which is scaled as a whole.
  [[nodiscard]] Seconds on_stream(const BucketTimes& bucket,
                                  const ComputeTimes& alone) const override {
    return bucket.sharded()->communication() * (1 + alone.repeated);
  }

  [[nodiscard]] IterationSketch sketch(const PlanAt& at, const ComputeTimes& alone,
                                       const std::vector<BucketTimes>& buckets) const override {
    return sketch_by_curve(at, alone, buckets);
  }

  void scale_communication(BucketTimes& bucket, double factor) const override {
    auto& times = std::get<ShardTimes>(bucket.by_way);
    for (Seconds* part : {&times.gather, &times.reduce, &times.all_reduce}) *part *= factor;
  }

  [[nodiscard]] Bytes moved(const PlanAt& at, const models::Bucket& bucket) const override {
    const ShardTraffic traffic = shard_traffic(use_of(at.plan), at.options.accumulate);
    const auto elements = static_cast<double>(bucket.elements);
    const models::ShardUse& use = use_of(at.plan);
    const double summed = use.shards == at.plan.ranks ? 0.5 : 0.5 + 1.0 / use.shards;
    return elements * (0.5 * traffic.gathers * models::element_size(at.options.precision) +
                       summed * traffic.reductions * models::element_size(at.plan.wire));
  }

  void name_thresholds(const models::Plan& plan, ThresholdRequest& asked) const override {
    asked.reshard = use_of(plan).reshard;
  }
};

}  // namespace

const WayModel& sharded_model() {
  static const ShardedModel model;
  return model;
}

}  // namespace paceline::simulator

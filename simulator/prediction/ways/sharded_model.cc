// Sharded plans, whose collectives stand among the passes. Tests: tests/simulator/sharded_test.cc.
#include <algorithm>
#include <utility>

#include "models/base/to_size.h"
#include "simulator/prediction/predictor_setting.h"
#include "simulator/prediction/ways/way_model.h"

namespace paceline::simulator {
namespace {

using models::Collective;

const models::ShardUse& use_of(const models::Plan& plan) {
  return *plan.uses<models::ShardUse>();
}

// The ranks over which a bucket's tensors are split, and their replicas. Ranks are numbered in a data-parallel
// group, and a rank's experts are those of every `parts`-th rank.
struct BucketRanks {
  int parts;
  int shards;
  int replicas;

  [[nodiscard]] Seconds in_shards(GroupTimers& groups, Collective collective, Bytes bytes) const {
    return parts == 1 ? groups.in_shards(shards, collective, bytes)
                      : groups.in_strided(parts, shards, collective, bytes);
  }
  [[nodiscard]] Seconds in_replicas(GroupTimers& groups, Bytes bytes) const {
    return parts == 1 ? groups.in_replicas(shards, Collective::all_reduce, bytes)
                      : groups.in_strided(parts * shards, replicas, Collective::all_reduce, bytes);
  }
};

BucketRanks ranks_of(const PlanAt& at, const models::Bucket& bucket) {
  const int parts = at.network.gradients[to_size(bucket.first_gradient)].parts;
  const int shards = use_of(at.plan).shards_of_parts(parts);
  return {parts, shards, std::max(1, at.plan.ranks / (parts * shards))};
}

class ShardedModel : public WayModel {
 public:
  [[nodiscard]] std::vector<BucketTimes> times(const PlanAt& at) const override {
    GroupTimers& groups = *at.setting.groups;
    const Seconds launch = at.plan.ranks > 1 ? at.setting.launch : Seconds{0};
    const Bytes parameter = models::element_size(at.options.precision);
    const Bytes gradient = models::element_size(at.plan.wire);
    std::vector<BucketTimes> buckets;
    for (const models::Bucket& bucket : at.plan.buckets) {
      const auto elements = static_cast<double>(bucket.elements);
      const BucketRanks ranks = ranks_of(at, bucket);
      ShardTimes times;
      times.gathered = elements * parameter;
      times.reduced = elements * gradient;
      times.replicated = times.reduced / ranks.shards;
      if (ranks.shards > 1) {
        times.gather = launch + ranks.in_shards(groups, Collective::all_gather, times.gathered);
        times.reduce = launch + ranks.in_shards(groups, Collective::reduce_scatter, times.reduced);
        times.copy_out = 2 * times.gathered / at.setting.memory;
        times.copy_in = (times.gathered + times.reduced) / at.setting.memory;
      }
      if (ranks.replicas > 1)
        times.all_reduce = launch + ranks.in_replicas(groups, times.replicated);
      buckets.emplace_back().by_way = times;
    }
    return buckets;
  }

  [[nodiscard]] std::string timed_by(const PlanAt& at) const override {
    return at.setting.groups->described(use_of(at.plan).shards);
  }

  [[nodiscard]] ComputeTimes with_tasks(const PlanAt& at, ComputeTimes compute) const override {
    const double share =
        split_parameters(at.network, use_of(at.plan), at.options.layout.expert_parts()) /
        static_cast<double>(at.network.parameters());
    return sharded_compute(std::move(compute), use_of(at.plan), share);
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
    const BucketRanks ranks = ranks_of(at, bucket);
    const double split = ranks.shards > 1 ? 0.5 : 0;  // a gather, or a reduce-scatter
    const double summed = split + (ranks.replicas > 1 ? 1.0 / ranks.shards : 0);
    return elements * (split * traffic.gathers * models::element_size(at.options.precision) +
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

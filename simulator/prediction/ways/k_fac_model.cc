// K-FAC, whose owners of layers sum gradients and factors. Tests: tests/simulator/k_fac_test.cc.
#include "simulator/iteration/plan_timing.h"
#include "simulator/prediction/predictor_setting.h"
#include "simulator/prediction/ways/way_model.h"

namespace paceline::simulator {
namespace {

// On ranks that compute `waiting` times as long as one alone.
KfacTimes times_of(const PlanAt& at, double waiting) {
  PredictorSetting& setting = at.setting;
  CollectiveTimer& timer = at.method.not_followed > 0 ? setting.by_steps : setting.engine;
  const auto ring = [&](std::string_view algorithm) {
    return [&timer, collective = k_fac_collective(algorithm, at.plan.ranks)](Bytes bytes) {
      return timer.time(collective, bytes);
    };
  };
  const RingTimes rings{ring("reduce-scatter"), ring("all-gather")};
  return k_fac_times({.network = at.network,
                      .plan = at.plan,
                      .device = at.cluster.device,
                      .precision = at.options.precision,
                      .batch_per_rank = at.options.batch_per_rank,
                      .accumulate = at.options.accumulate,
                      .waiting = waiting,
                      .launch = setting.launch},
                     rings, at.options.compute_is_exact ? Bound::stated : setting.bound);
}

class KfacModel : public WayModel {
 public:
  [[nodiscard]] std::vector<BucketTimes> times(const PlanAt& at) const override {
    const Seconds alone = at.setting.alone.total();
    BucketTimes times;
    times.by_way = times_of(at, alone > Seconds{0} ? at.setting.compute.total() / alone : 1);
    return {std::move(times)};
  }

  [[nodiscard]] std::string timed_by(const PlanAt& at) const override {
    return at.plan.ranks == 1
               ? "no communication on one rank"
               : WayModel::timed_by(at) + ": a ring reduce-scatter and a ring all-gather";
  }

  [[nodiscard]] ComputeTimes alone(const PlanAt& at) const override {
    return times_of(at, /*waiting=*/1).folded_into(WayModel::alone(at));
  }

  [[nodiscard]] Seconds on_stream(const BucketTimes& bucket,
                                  const ComputeTimes& alone) const override {
    Seconds backward;
    for (const LayerTime& layer : alone.layers) backward += layer.backward;
    return bucket.k_fac()->communication(backward);
  }

  void name_thresholds(const models::Plan& plan, ThresholdRequest& asked) const override {
    const auto& use = *plan.uses<models::KfacUse>();
    asked.placement = use.owners;
    asked.factors_every = use.factors_every;
  }
};

}  // namespace

const WayModel& k_fac_model() {
  static const KfacModel model;
  return model;
}

}  // namespace paceline::simulator

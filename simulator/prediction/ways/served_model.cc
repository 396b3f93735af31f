// Buckets that servers of another system sum. Tests: tests/simulator/server_cost_test.cc.
#include "models/base/to_size.h"
#include "models/plan/strategy.h"
#include "simulator/prediction/predictor_setting.h"
#include "simulator/prediction/ways/way_model.h"

namespace paceline::simulator {
namespace {

std::optional<BytesPerSecond> host_link(const models::Cluster& cluster, Bound bound) {
  if (!cluster.host_link) return std::nullopt;
  return rate_at(cluster.host_link->bandwidth, bound);
}

class ServedModel : public WayModel {
 public:
  [[nodiscard]] std::string timed_by(const PlanAt& /*at*/) const override {
    return "a closed form on the busiest machine";
  }

  void name_thresholds(const models::Plan& plan, ThresholdRequest& asked) const override {
    const auto& use = *plan.uses<models::ServerUse>();
    asked.transport = use.transport;
    if (use.own_machines) asked.server_machines = use.servers;
  }

 protected:
  void set_transfer(const PlanAt& at, const models::Bucket& bucket, const BucketTimer& timer,
                    BucketTimes& times) const override {
    const models::PlannedSchedule& schedule = at.plan.schedules[to_size(bucket.schedule)];
    times.by_way = served_phases({models::strategy(at.plan.strategy).other->system,
                                  std::get<models::ServerUse>(schedule.way), at.plan.bytes(bucket),
                                  at.plan.ranks, host_link(at.cluster, at.setting.bound)},
                                 timer.cost(), at.setting.bound);
  }
};

}  // namespace

const WayModel& served_model() {
  static const ServedModel model;
  return model;
}

}  // namespace paceline::simulator

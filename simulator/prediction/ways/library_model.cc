// A library's own all-reduces, as BucketTimer times them. Tests: tests/simulator/prediction_test.cc.
#include <algorithm>

#include "simulator/prediction/predictor_setting.h"
#include "simulator/prediction/ways/way_model.h"

namespace paceline::simulator {
namespace {

std::string described(const LibraryCurve& curve, const models::Plan& plan) {
  if (plan.buckets.empty()) return curve.described(Bytes{0}, Bytes{0});
  const auto [least, most] =
      std::ranges::minmax_element(plan.buckets, {}, &models::Bucket::elements);
  return curve.described(plan.bytes(*least), plan.bytes(*most));
}

class LibraryModel : public WayModel {
 public:
  [[nodiscard]] std::string timed_by(const PlanAt& at) const override {
    const LibraryCurve* curve = at.setting.curve_of(*at.plan.schedules.front().library());
    return curve != nullptr  ? described(*curve, at.plan)
           : at.setting.nccl ? simulator::described(*at.setting.nccl)
                             : "no communication on one rank";
  }
};

}  // namespace

const WayModel& library_model() {
  static const LibraryModel model;
  return model;
}

}  // namespace paceline::simulator

// All gradients travel in one bucket, which the owners of the layers sum and precondition, beside the
// factors (models/plan/k_fac.h).
#pragma once

#include "models/plan/ways/traits.h"

namespace paceline::models {

struct Preconditioned {
  static constexpr WayTraits traits{.takes_placement = true,
                                    .takes_factors = true,
                                    .in_one_bucket = true,
                                    .may_overlap_iterations = false,
                                    .may_straggle = false};
  [[nodiscard]] std::vector<std::string_view> algorithms() const { return {}; }
  [[nodiscard]] bool allows(const PlannedSchedule& schedule) const;
  [[nodiscard]] std::string allowed() const { return "its owners"; }
  int schedule_of(const Bucket& bucket, PlanInMaking& plan) const;
  void check(int /*ranks*/, const Thresholds& /*thresholds*/) const {}
};

}  // namespace paceline::models

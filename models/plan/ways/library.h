// Every bucket is summed by a library's own all-reduce.
#pragma once

#include "models/plan/planned_schedule.h"
#include "models/plan/ways/traits.h"

namespace paceline::models {

struct Called {
  Library library = Library::nccl;

  // A library runs one collective of a communicator at a time, and NCCL does not go through the host.
  static constexpr WayTraits traits{};
  [[nodiscard]] std::vector<std::string_view> algorithms() const { return {}; }
  [[nodiscard]] bool allows(const PlannedSchedule& schedule) const;
  [[nodiscard]] std::string allowed() const;
  int schedule_of(const Bucket& bucket, PlanInMaking& plan) const;
  void check(int /*ranks*/, const Thresholds& /*thresholds*/) const {}
};

}  // namespace paceline::models

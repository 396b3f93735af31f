// Buckets travel by schedules of the catalogue of all-reduces.
#pragma once

#include "models/base/units.h"
#include "models/plan/ways/traits.h"

namespace paceline::models {

// Every bucket takes the same algorithm.
struct Scheduled {
  std::string_view algorithm;  // name in all_reduce_catalogue()

  static constexpr WayTraits traits{.takes_streams = true, .takes_host_copies = true};
  [[nodiscard]] std::vector<std::string_view> algorithms() const { return {algorithm}; }
  [[nodiscard]] bool allows(const PlannedSchedule& schedule) const;
  [[nodiscard]] std::string allowed() const { return std::string(algorithm); }
  int schedule_of(const Bucket& bucket, PlanInMaking& plan) const;
  void check(int /*ranks*/, const Thresholds& /*thresholds*/) const {}
};

// The size of a bucket decides its algorithm.
struct Hybrid {
  std::string_view small;  // name in all_reduce_catalogue(), for buckets up to eta
  std::string_view large;  // the same for larger buckets
  Bytes threshold{0};      // eta where the strategy defines it; 0 where it is chosen

  static constexpr WayTraits traits = Scheduled::traits;
  [[nodiscard]] std::vector<std::string_view> algorithms() const { return {small, large}; }
  [[nodiscard]] bool allows(const PlannedSchedule& schedule) const;
  [[nodiscard]] std::string allowed() const;
  int schedule_of(const Bucket& bucket, PlanInMaking& plan) const;
  void check(int /*ranks*/, const Thresholds& /*thresholds*/) const {}
};

// Each bucket is summed on one server among the ranks, and all buckets are in flight at once.
struct OnServers {
  std::string_view algorithm;  // name in all_reduce_catalogue()

  static constexpr WayTraits traits{
      .takes_servers = true, .takes_placement = true, .all_at_once = true, .by_kernels = false};
  [[nodiscard]] std::vector<std::string_view> algorithms() const { return {algorithm}; }
  [[nodiscard]] bool allows(const PlannedSchedule& schedule) const;
  [[nodiscard]] std::string allowed() const { return std::string(algorithm); }
  int schedule_of(const Bucket& bucket, PlanInMaking& plan) const;
  void check(int ranks, const Thresholds& thresholds) const;
};

}  // namespace paceline::models

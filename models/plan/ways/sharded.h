// Each bucket is summed to shards, and parameters are gathered from them (models/layout/sharding.h).
//
// Where parameters are kept in shards, a bucket is a unit of PyTorch FSDP: the gradients of one block, whose
// parameters are gathered together.
#pragma once

#include "models/layout/sharding.h"
#include "models/plan/ways/traits.h"

namespace paceline::models {

struct Sharded {
  ShardingKind kind = ShardingKind::zero1;
  bool in_groups = false;  // of k ranks; else one group of all

  static constexpr WayTraits traits{.may_overlap_iterations = false, .may_straggle = false};
  // Whether parameters are gathered before passes.
  [[nodiscard]] bool gathers() const { return sharding(kind).before_pass().has_value(); }
  [[nodiscard]] std::vector<std::string_view> algorithms() const { return {}; }
  [[nodiscard]] bool allows(const PlannedSchedule& schedule) const;
  [[nodiscard]] std::string allowed() const { return std::string(name(kind)); }
  int schedule_of(const Bucket& bucket, PlanInMaking& plan) const;
  void check(int ranks, const Thresholds& thresholds) const;
};

}  // namespace paceline::models

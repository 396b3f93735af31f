// The time of a bucket's all-reduce, whatever it is: a schedule, by an engine, or a library's own,
// by the library's own model.
#pragma once

#include "models/plan/plan.h"
#include "simulator/cost/nccl_model.h"
#include "simulator/engine/collective_timer.h"

namespace paceline::simulator {

// Refers to both; cheap to copy.
class BucketTimer {
 public:
  // A timer of schedules is one of buckets, hence not explicit. `nccl` may be null where no plan
  // asks for NCCL.
  BucketTimer(CollectiveTimer& engine, const NcclModel* nccl = nullptr)
      : engine_(&engine), nccl_(nccl) {}

  // Completion time of an all-reduce of `bytes`, all ranks ready at once.
  [[nodiscard]] Seconds time(const models::PlannedSchedule& schedule, Bytes bytes) const;
  [[nodiscard]] const CommunicationCost& cost() const { return engine_->cost(); }

 private:
  CollectiveTimer* engine_;
  const NcclModel* nccl_;
};

}  // namespace paceline::simulator

// The time of a bucket's all-reduce, whatever it is: a schedule, by an engine; or a library's own,
// by its calibrated curve where there is one, else by what is known of the library
// (nccl_practice.h).
#pragma once

#include <map>

#include "models/plan/plan.h"
#include "simulator/cost/library_curve.h"
#include "simulator/engine/collective_timer.h"
#include "simulator/engine/nccl_practice.h"

namespace paceline::simulator {

using LibraryCurves = std::map<models::Library, LibraryCurve>;

// Refers to its parts; cheap to copy.
class BucketTimer {
 public:
  // A timer of schedules is one of buckets, hence not explicit. `nccl` may be null where no plan
  // asks for NCCL, or NCCL has a curve; `curves` may be null where no library has one. Each
  // all-reduce takes `launch` more.
  BucketTimer(CollectiveTimer& engine, const NcclPractice* nccl = nullptr,
              const LibraryCurves* curves = nullptr, Seconds launch = Seconds{0})
      : engine_(&engine), nccl_(nccl), curves_(curves), launch_(launch) {}

  // Completion time of an all-reduce of `bytes`, all ranks ready at once. Throws InputError for a
  // library that has neither a curve nor a model, and as CollectiveTimer::time does.
  [[nodiscard]] Seconds time(const models::PlannedSchedule& schedule, Bytes bytes) const;
  // The same with another time to launch an all-reduce.
  [[nodiscard]] BucketTimer launched_in(Seconds launch) const {
    BucketTimer other = *this;
    other.launch_ = launch;
    return other;
  }
  // Whether the step engine times it.
  [[nodiscard]] bool is_by_steps(const models::PlannedSchedule& schedule) const {
    return schedule.has_steps() && engine_->engine(schedule) == EngineKind::step;
  }
  // The engine that times a schedule of ours.
  [[nodiscard]] EngineKind engine(const models::PlannedSchedule& schedule) const {
    return engine_->engine(schedule);
  }
  [[nodiscard]] const CommunicationCost& cost() const { return engine_->cost(); }

 private:
  // Once it is launched.
  [[nodiscard]] Seconds launched_time(const models::PlannedSchedule& schedule, Bytes bytes) const;

  CollectiveTimer* engine_;
  const NcclPractice* nccl_;
  const LibraryCurves* curves_;
  Seconds launch_;
};

}  // namespace paceline::simulator

// Tests: tests/simulator/prediction_test.cc.
#include "simulator/planner/bucket_timer.h"

#include "models/base/error.h"

namespace paceline::simulator {

Seconds BucketTimer::time(const models::PlannedSchedule& schedule, Bytes bytes) const {
  return launch_ + launched_time(schedule, bytes);
}

Seconds BucketTimer::launched_time(const models::PlannedSchedule& schedule, Bytes bytes) const {
  const auto library = schedule.library();
  if (!library) return engine_->time(schedule, bytes);
  if (schedule.options.ranks == 1) return Seconds{0};
  if (curves_ != nullptr) {
    const auto curve = curves_->find(*library);
    if (curve != curves_->end()) return curve->second.time(bytes);
  }
  if (*library == models::Library::open_mpi)
    throw InputError("the profile does not know the library's own all-reduce",
                     "give one that paceline calibrate made under mpirun or imported, or another "
                     "strategy");
  PACELINE_ASSERT(nccl_ != nullptr && schedule.options.ranks == nccl_->ranks(),
                  "a plan for a library is timed with that library's model");
  return nccl_->time(bytes);
}

}  // namespace paceline::simulator

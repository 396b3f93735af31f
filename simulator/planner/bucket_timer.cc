// Tests: tests/simulator/prediction_test.cc.
#include "simulator/planner/bucket_timer.h"

#include "models/base/error.h"

namespace paceline::simulator {

Seconds BucketTimer::time(const models::PlannedSchedule& schedule, Bytes bytes) const {
  if (!schedule.library) return engine_->time(schedule, bytes);
  if (*schedule.library == models::Library::open_mpi)
    return schedule.options.ranks == 1 ? Seconds{0} : cost().library_all_reduce(bytes);
  PACELINE_ASSERT(nccl_ != nullptr && schedule.options.ranks == nccl_->ranks(),
                  "a plan for a library is timed with that library's model");
  return nccl_->time(bytes);
}

}  // namespace paceline::simulator

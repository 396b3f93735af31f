// A setting of a job (job_settings.h), which its predictions share.
#pragma once

#include <optional>

#include "simulator/cost/compute_time.h"
#include "simulator/engine/collective_timer.h"
#include "simulator/iteration/dag.h"
#include "simulator/planner/bucket_timer.h"
#include "simulator/planner/group_timers.h"

namespace paceline::simulator {

// Everything that strategies share at one number of ranks and one bound of the figures.
struct PredictorSetting {
  int ranks;
  Bound bound;
  ComputeTimes alone;    // of a rank that computes alone
  ComputeTimes compute;  // of the slowest of all ranks
  Seconds launch;        // of one collective
  InputTimes input;
  BytesPerSecond memory;
  CollectiveTimer by_steps;  // the step engine, for the planner, which times hundreds of buckets
  CollectiveTimer engine;
  LibraryCurves curves;               // set once a strategy of the library needs one
  std::optional<NcclPractice> nccl;   // set once a strategy needs it and NCCL has no curve
  std::optional<GroupTimers> groups;  // set once a sharded strategy needs it

  // The library's calibrated curve; null if the profile has none that serves.
  [[nodiscard]] const LibraryCurve* curve_of(models::Library library) const {
    const auto found = curves.find(library);
    return found == curves.end() ? nullptr : &found->second;
  }
  // The planner counts what it takes to start each collective.
  [[nodiscard]] BucketTimer planner() {
    return {by_steps, nccl ? &*nccl : nullptr, &curves, launch};
  }
  [[nodiscard]] BucketTimer alone_by_steps() {
    return {by_steps, nccl ? &*nccl : nullptr, &curves};
  }
  [[nodiscard]] BucketTimer timer() { return {engine, nccl ? &*nccl : nullptr, &curves}; }
};

}  // namespace paceline::simulator

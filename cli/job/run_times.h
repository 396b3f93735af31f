// The times of every rank of a run, brought to rank 0, which writes the timeline.
#pragma once

#include <cstdint>

#include "models/timeline/rank_times.h"
#include "runtime/channel/channel.h"

namespace paceline::job {

inline constexpr std::int64_t most_rank_layers = 250'000;

// All ranks call it, each with its own timeline of at most runtime::recorded_iterations of the job.
// Returns the times of all on rank 0, and nothing on the others; nothing at all where ranks x layers
// are more than most_rank_layers, because a timeline must stay small enough to be read. Throws RunError that names a rank
// that is gone.
[[nodiscard]] models::RunTimes gather_run_times(runtime::Channel& channel,
                                                const models::TracedTimeline& own);

}  // namespace paceline::job

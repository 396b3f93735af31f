// The collectives that a plan's buckets take between the ranks of a job.
#pragma once

#include <span>

#include "models/plan/plan.h"
#include "runtime/network/trainable_network.h"

namespace paceline::runtime {

// Throws InputError if the plan is not of these parameters or of as many ranks, or one that cannot be run: a layout other
// than tensor parallelism, shards that do not divide its ranks, an overlap that its strategy does not have, or priority,
// for which all ranks would have to agree on an order while they run.
void check_runnable(const models::Plan& plan, std::span<const ParameterPlace> parameters,
                    int ranks);

// The collective that sums a bucket: to parts, in groups of ranks, where the plan is sharded. With tensor parallelism it
// is that of the ranks with the same part of the network. Throws InputError if it is then a library's own.
[[nodiscard]] models::PlannedSchedule bucket_sum(const models::Plan& plan,
                                                 const models::Bucket& bucket);
// The collective that brings the parts of a sharded plan's bucket to all ranks that share it out.
[[nodiscard]] models::PlannedSchedule bucket_gather(const models::Plan& plan);
// The all-reduce of what neighbours compute of a layer, with tensor parallelism.
[[nodiscard]] models::PlannedSchedule neighbour_sum(const models::Plan& plan);

}  // namespace paceline::runtime

// The reference executor: it runs a schedule on the buffers of all ranks in one thread.
//
// It has no transport and no overlap. It does exactly what schedule.h says, step by step, and the
// executors over real transports are held against it.
#pragma once

#include <span>
#include <vector>

#include "models/collective/schedule.h"

namespace paceline::runtime {

// buffers[r] is rank r's bucket, of equal sizes; on return it holds what the schedule leaves there.
// Within a step all messages are read before any lands; reductions add in the order in which
// the schedule enumerates them. Throws InputError if there is not one buffer for each rank, or
// sizes differ. O(transferred elements).
void execute_sequentially(const models::Schedule& schedule, std::span<std::vector<float>> buffers);

}  // namespace paceline::runtime

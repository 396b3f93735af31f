// Published figures that follow from a network, a schedule or a layout alone. No time is predicted of
// them, and no summary of errors has them.
#pragma once

#include "experiments/published/row_job.h"
#include "experiments/published/source.h"

namespace paceline::experiments {

[[nodiscard]] bool is_count(Quantity quantity);

//  - flops_per_parameter: FLOPs of a forward pass of one sample over the parameters (You et al. 2018).
//  - idle_ranks: those that the algorithm of the row's strategy sets aside, because their number is no
//    power of two: they hand over what they have, wait, and get the result.
//  - memory: what a rank of the row's plan needs (simulator/cost/device_memory.h), in bytes.
// Throws InputError where the strategy has no algorithm of ours.
[[nodiscard]] double count_of(Quantity quantity, const RowJob& job);

}  // namespace paceline::experiments

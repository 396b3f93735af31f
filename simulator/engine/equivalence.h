// Ranks in equal positions: how far a schedule on a homogeneous cluster can be collapsed.
//
// Label each rank with rank mod M. M is *equitable* for a schedule if in every step, the labels
// that a rank sends to and receives from, with sizes, depend on its own label alone. Then ranks
// with equal labels and equal ready times finish every step together, and M ranks stand for all.
// With node-major placement, g ranks on each node and g dividing M, whether a message leaves its
// node, and how many messages share its NIC, depend on the label too (proof in the .cc).
#pragma once

#include "models/collective/schedule.h"

namespace paceline::simulator {

// Is rank mod `modulus` equitable? `modulus` must divide schedule.ranks(). "No" may be too
// cautious; it costs time, not truth. O(nodes of the schedule's tree).
[[nodiscard]] bool is_equitable(const models::Schedule& schedule, int modulus);

// The least equitable modulus that is a multiple of `ranks_per_node`, or all ranks.
[[nodiscard]] int collapsed_ranks(const models::Schedule& schedule, int ranks_per_node);

}  // namespace paceline::simulator

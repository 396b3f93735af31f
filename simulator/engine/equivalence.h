// Ranks in equal positions: how far a schedule on a homogeneous cluster can be collapsed.
//
// Label each rank with rank mod M. M is *equitable* for a schedule if in every step, the labels
// that a rank sends to and receives from, with sizes, depend on its own label alone. Then ranks
// with equal labels and equal ready times finish every step together, and M ranks stand for all.
// With node-major placement, g ranks on each node and g dividing M, whether a message leaves its
// node, and how many messages share its NIC, depend on the label too (proof in the .cc).
#pragma once

#include <span>

#include "models/collective/schedule.h"
#include "simulator/engine/routes.h"

namespace paceline::simulator {

// Whether an engine computes ranks in equal positions once.
enum class Collapse {
  equal_positions,  // one rank stands for all in its position; their ready times must be equal
  none,             // every rank is computed by itself
};

// Is rank mod `modulus` equitable? `modulus` must divide schedule.ranks(). "No" may be too
// cautious; it costs time, not truth. O(nodes of the schedule's tree).
[[nodiscard]] bool is_equitable(const models::Schedule& schedule, int modulus);

// Do the messages of each step, with their sizes, stay the same if all ranks turn by `by`, which
// must divide them? Then rank mod `by` is equitable, and a message's image is its translation.
[[nodiscard]] bool is_translated(const models::Schedule& schedule, int by);

// The least modulus that is equitable for all of the schedules, which are over as many ranks, and a
// multiple of routes.unit(); or all ranks.
[[nodiscard]] int collapsed_ranks(std::span<const models::Schedule> schedules,
                                  const Routes& routes);

}  // namespace paceline::simulator

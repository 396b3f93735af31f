// Ranks in equal positions: how far a schedule on a homogeneous cluster can be collapsed.
//
// Label each rank with rank mod M. M is *equitable* for a schedule if in every step, the labels
// that a rank sends to and receives from, with sizes, depend on its own label alone. Then ranks
// with equal labels and equal ready times finish every step together, and M ranks stand for all.
// With node-major placement, g ranks on each node and g dividing M, whether a message leaves its
// node, and how many messages share its NIC, depend on the label too (proof in the .cc).
//
// The quotient is exact in both engines. Ranks of one position, links of one kind and messages of one
// kind see the same numbers of each other kind (that is what equitable means), and the engines' rules
// name no rank. So if all of a kind are in one state at a time, then all of it are a moment later: a
// message waits for ends that are alike, and max-min fair rates are unique, so that the rates of the
// quotient, with as many flows on a link as pass it, are those of the whole (max_min.h).
#pragma once

#include <span>

#include "models/collective/schedule.h"
#include "simulator/engine/network_engine.h"
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

// Do the messages of each step, with their sizes, stay the same whatever ranks change places? So do
// those of a direct exchange. Then every way to put alike ranks of the cluster into classes is
// equitable, also where the last node is not full. "No" may be too cautious.
[[nodiscard]] bool is_symmetric(const models::Schedule& schedule);

// The least modulus that is equitable for all of the schedules, which are over as many ranks, and a
// multiple of routes.unit(); or all ranks.
[[nodiscard]] int collapsed_ranks(std::span<const models::Schedule> schedules,
                                  const Routes& routes);

// The positions that stand for all ranks. They are the ranks below collapsed_ranks(), where those
// are fewer than all; else, where all schedules are symmetric, those of one full node (or of all
// that is under one switch) and those of the last one, which is not full; else all ranks.
[[nodiscard]] Positions positions_of(std::span<const models::Schedule> schedules,
                                     const Routes& routes);

// When each rank is done, from when each position is. Without a tail the positions alone are stored.
[[nodiscard]] Completion completion_of(const Positions& positions,
                                       std::span<const double> finish_s);

}  // namespace paceline::simulator

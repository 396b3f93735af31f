// The combinators of schedules. Algorithms are written with these, never transfer by transfer.
#pragma once

#include <vector>

#include "models/collective/schedule.h"

namespace paceline::models {

// Schedules one after the other. All must be over the same number of ranks. Schedules without steps
// are dropped.
[[nodiscard]] Schedule sequence(std::vector<Schedule> parts);

// `inner` in each group at the same time, each on the whole bucket or on its own part of it.
// `inner` must be over groups.size() ranks, and groups must lie within 0..ranks-1 and not overlap.
[[nodiscard]] Schedule within(int ranks, Groups groups, Schedule inner, Share share = Share::whole);

// `inner` on part `index` of `of` of the bucket.
[[nodiscard]] Schedule on_part(int index, int of, Schedule inner);

// Schedules at the same time, step by step. All must be over the same number of ranks. Schedules
// without steps are dropped.
[[nodiscard]] Schedule parallel(std::vector<Schedule> parts);

// The bucket in `segments` equal segments, which go through `inner` one step apart: inner.steps() +
// segments - 1 steps.
[[nodiscard]] Schedule pipelined(int segments, Schedule inner);

// Role i of `inner` goes to rank (multiplier * i + offset) mod block in each block of `block`
// ranks. `block` must divide the ranks, and `multiplier` be coprime to it.
[[nodiscard]] Schedule renumbered(int block, int multiplier, int offset, Schedule inner);
// Role i of `inner` goes to rank p - 1 - i.
[[nodiscard]] Schedule mirrored(Schedule inner);

// Ranks in blocks of `size`: {0..size-1}, {size..2 size-1}, ... `size` must divide `ranks`.
[[nodiscard]] Groups blocks(int ranks, int size);
// The members with the same index in each block: {0, size, 2 size, ...}, {1, size+1, ...}, ...
[[nodiscard]] Groups across_blocks(int ranks, int size);
// The first member of each block, as one group {0, size, 2 size, ...}.
[[nodiscard]] Groups block_masters(int ranks, int size);

}  // namespace paceline::models

// What every engine answers: (schedule, cluster, bucket, ready times) -> completion times.
//
// Semantics, written once and cited by all engines:
//  1. A rank runs the steps of the schedule in order. It is done with a step when all messages
//     that it sends in it have arrived, all that it receives have arrived, and those that are to be
//     reduced are reduced. A rank without a message in a step is done with it at once.
//  2. A message of step s starts when its sender and its receiver are both done with step s-1
//     (or ready, for the first). Nothing else is synchronised.
//  3. A message takes alpha of its path once, and then its bytes over the bandwidth that it
//     gets. alpha is latency: it occupies no link.
//  4. Reductions of a rank in one step take gamma for each byte, one after the other, after
//     the last message that it receives in the step has arrived. The completion includes the last
//     of them.
//  5. Chunks are fractions of the bucket: n/p bytes each, not rounded to elements.
//
// Links and paths are those of routes.h. They are full duplex: the two directions do not share.
#pragma once

#include <algorithm>
#include <vector>

#include "models/base/units.h"

namespace paceline::simulator {

enum class Collapse {
  equal_positions,  // one rank stands for all in its position: ready times must be equal
  none,             // every rank by itself
};

// When each rank is done. Ranks in equal positions are stored once.
struct Completion {
  std::vector<Seconds> finish;  // rank r finishes at finish[r % finish.size()]; never empty

  [[nodiscard]] Seconds of(int rank) const {
    return finish[static_cast<std::size_t>(rank) % finish.size()];
  }
  [[nodiscard]] Seconds last() const { return *std::max_element(finish.begin(), finish.end()); }
};

}  // namespace paceline::simulator

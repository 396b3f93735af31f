// Positions that do the same at the same time, found in the messages themselves rather than in the
// structure of a schedule (equivalence.h): the ranks of a node mostly do, also where nodes differ.
//
// Colour refinement: positions and links begin with the colour of what they are. They are told apart
// as long as they differ in the colours of the messages that they send, receive or carry in a run.
// Those of one colour at the end are a class of an equitable partition, the coarsest there is
// (Cardon & Crochemore 1982; Berkholz, Bonsma & Grohe 2017, section 2). Its quotient is exact for the
// reason that equivalence.h gives. Colours are 64-bit hashes.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "simulator/engine/positions.h"
#include "simulator/engine/prepare.h"
#include "simulator/engine/routes.h"

namespace paceline::simulator {

// Schedules that may be in flight together, each as its runs.
using RunsOfSchedules = std::vector<std::vector<PreparedRun>>;

struct AlikePositions {
  std::vector<int> class_of;  // each position
  int classes = 0;
  // The runs between classes in place of positions. One message stands for all alike ones; its links
  // stand for theirs, and have the number of those that pass them as weights. No link is shifted.
  RunsOfSchedules runs;
};

// Nothing where most positions are alone in their class, or where it takes many rounds to tell them
// apart, as along a ring: there would be little to gain.
// O(rounds x links on the ways of all messages).
[[nodiscard]] std::optional<AlikePositions> alike_positions(const RunsOfSchedules& schedules,
                                                            const Routes& routes,
                                                            const Positions& positions);

}  // namespace paceline::simulator

// A schedule as the step engine walks through it: runs of alike steps between positions, whatever
// the figures of the links are. It is made once for all readings of a cluster's figures.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/collective/schedule.h"
#include "simulator/engine/equivalence.h"
#include "simulator/engine/positions.h"
#include "simulator/engine/prepare.h"
#include "simulator/engine/way_kinds.h"

namespace paceline::simulator {

struct StepProgram {
  // A message between positions. It takes alpha, and its kind's time for each byte of the bucket: the
  // loads of a way are the shares of the bucket that pass its links in the step.
  struct Message {
    int from = 0;
    int to = 0;
    int kind = 0;
  };
  // A position that takes part in a run, and the share of the bucket that it reduces in each step.
  struct Participant {
    int position = 0;
    double reduced = 0;
  };
  // `repeats` alike steps.
  struct Run {
    std::size_t first_message = 0;
    std::size_t end_message = 0;
    std::size_t first_participant = 0;
    std::size_t end_participant = 0;
    int repeats = 1;
  };

  Positions positions{1};
  std::vector<Message> messages;
  std::vector<Participant> participants;
  std::vector<Run> runs;
  WayKinds kinds;
};

// Throws TooManyMessages where that takes more than `most_messages`.
[[nodiscard]] StepProgram make_step_program(const models::Schedule& schedule, const Routes& routes,
                                            Collapse collapse = Collapse::equal_positions,
                                            std::int64_t most_messages = most_prepared_messages);

}  // namespace paceline::simulator

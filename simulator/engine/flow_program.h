// A schedule as the flow engine walks through it: for each position, which runs it takes part in;
// for each of those, its messages; for each message, its lane. Positions are those of equivalence.h,
// or classes of them that do the same at the same time (alike_positions.h).
//
// A lane is a way from one rank to another that carries one message at a time: a step's message
// between two ranks has arrived before either of them is in the next step. State is kept for lanes,
// which are few where a schedule sends over the same ways in many steps.
#pragma once

#include <span>
#include <vector>

#include "models/base/to_size.h"
#include "models/collective/schedule.h"
#include "simulator/engine/equivalence.h"
#include "simulator/engine/path_classes.h"
#include "simulator/engine/positions.h"
#include "simulator/engine/prepare.h"

namespace paceline::simulator {

struct FlowProgram {
  struct Message {
    int from = 0;  // positions
    int to = 0;
    int lane = 0;
    double fraction = 0;  // of the bucket
  };
  struct Lane {
    // In FlowPrograms::kinds: alpha, and the seconds for each byte of a message on the narrowest link;
    // the loads of a way are as many alike messages as pass its links.
    int kind = 0;
    // Its part of `links`. First come links on which other messages of the same schedule may be at
    // the same time, up to end_own; then those that only messages of another collective may be on.
    std::size_t first_link = 0;
    std::size_t end_own = 0;
    std::size_t end_link = 0;
  };
  // The messages and reductions of one position in one run.
  struct Part {
    int position = 0;
    int run = 0;
    int sends = 0;  // in each step
    int receives = 0;
    double reduced = 0;             // share of the bucket that each rank reduces
    std::size_t first_message = 0;  // of `mine`
    std::size_t end_message = 0;
  };
  struct Run {
    int first_message = 0;
    int end_message = 0;
    int first_part = 0;
    int end_part = 0;
    int repeats = 1;
  };

  std::vector<Message> messages;
  std::vector<Lane> lanes;
  std::vector<int> links;       // of FlowPrograms::links
  std::vector<double> weights;  // how many alike messages pass each of `links`
  std::vector<Part> parts;
  std::vector<int>
      mine;  // messages of the parts; one that a position sends to itself is there twice
  std::vector<Run> runs;
  std::vector<int> program;  // parts of position 0 in order, of position 1, ...
  std::vector<std::size_t> first_of_program;

  [[nodiscard]] std::span<const int> program_of(int position) const {
    const auto p = to_size(position);
    return std::span(program).subspan(first_of_program[p],
                                      first_of_program[p + 1] - first_of_program[p]);
  }
};

// Messages that the flow engine takes at most: about 200 MB with what it keeps of each in flight.
inline constexpr std::size_t most_flow_messages = 1'000'000;

// Schedules over the same ranks, which may be in flight together.
struct FlowPrograms {
  Positions ranks{1};         // which ranks stand for all
  std::vector<int> class_of;  // each of these: the position of the programs that stands for it
  int positions = 1;          // of the programs
  std::vector<FlowProgram> programs;
  std::vector<int> links;  // those that messages share
  PathClasses kinds;
};

// Throws TooManyMessages beyond most_flow_messages for one of the schedules.
[[nodiscard]] FlowPrograms make_flow_programs(std::span<const models::Schedule> schedules,
                                              const Routes& routes,
                                              Collapse collapse = Collapse::equal_positions);

}  // namespace paceline::simulator

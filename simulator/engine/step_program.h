// A schedule as the step engine walks through it: runs of alike steps between positions, whatever
// the figures of the links are. It is made once for all bounds of a cluster's figures.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "models/collective/schedule.h"
#include "simulator/engine/equivalence.h"
#include "simulator/engine/path_classes.h"
#include "simulator/engine/positions.h"
#include "simulator/engine/prepare.h"

namespace paceline::simulator {

// What runs are made of. It grows while more runs are put together from it.
struct StepParts {
  // A message between positions. It takes alpha, and its kind's time for each byte: the loads of a way
  // are the shares of the bucket, or of a segment, that pass its links in the step.
  struct Message {
    int from = 0;
    int to = 0;
    int kind = 0;
  };
  // A position that takes part in a run, and the share that it reduces in each step.
  struct Participant {
    int position = 0;
    double reduced = 0;
  };

  Positions positions{1};
  std::vector<Message> messages;
  std::vector<Participant> participants;
  PathClasses kinds;
};

struct StepProgram {
  // `repeats` alike steps.
  struct Run {
    std::size_t first_message = 0;
    std::size_t end_message = 0;
    std::size_t first_participant = 0;
    std::size_t end_participant = 0;
    int repeats = 1;
  };

  std::shared_ptr<const StepParts> parts;
  std::vector<Run> runs;
  double share = 1;  // of the bucket that shares are of

  [[nodiscard]] std::span<const StepParts::Message> messages(const Run& run) const {
    return std::span(parts->messages)
        .subspan(run.first_message, run.end_message - run.first_message);
  }
  [[nodiscard]] std::span<const StepParts::Participant> participants(const Run& run) const {
    return std::span(parts->participants)
        .subspan(run.first_participant, run.end_participant - run.first_participant);
  }
};

// How much of a link the messages of a step that share it take together.
enum class Load {
  sum,  // the sum over all of them, as the step engine has it
  // The sum over the ranks that one position stands for. Their messages start together, so that in
  // max-min fair sharing none is faster than by this. With it, the step engine's time is a lower bound for the
  // flow engine's: in max-plus arithmetic nothing is later where a message takes less time.
  alike,
};

class StepMaker;

// A pipeline over ranks of which none stands for others, for any number of segments. A step of it is
// as many steps of what is inside as there are segments on their way, and pipelines of other numbers
// of segments have many of those in common: each is put together once.
class Pipeline {
 public:
  // Throws TooManyMessages where one segment has more than `most_messages`.
  Pipeline(const models::Schedule& inner, const Routes& routes, std::int64_t most_messages,
           Load load = Load::sum);
  // Only `ranks`, in ascending order, send and receive in it.
  Pipeline(std::span<const int> ranks, const models::Schedule& inner, const Routes& routes,
           std::int64_t most_messages, Load load = Load::sum);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // The program of `schedule`, which is a Pipelined node around the inner schedule of this. Throws
  // TooManyMessages where that takes more than `most_messages`.
  [[nodiscard]] StepProgram program(const models::Schedule& schedule, const Routes& routes,
                                    std::int64_t most_messages);

 private:
  std::unique_ptr<StepMaker> maker_;
  std::map<std::pair<int, int>, StepProgram::Run> known_;  // by first and last step inside
};

// What is inside a pipeline whose ranks are not collapsed on these routes, so that make_step_program()
// takes a Pipeline; else null.
[[nodiscard]] const models::Schedule* inside_pipeline(const models::Schedule& schedule,
                                                      const Routes& routes);

// The part of a schedule that `ranks`, by rising number, send and receive, each rank by itself. What
// passes between others is left out. The part takes at most as long as the whole, for in max-plus
// arithmetic nothing is later where a message is missing, and no link carries more. Throws
// TooManyMessages where the part has more than `most_messages`.
[[nodiscard]] StepProgram make_step_program_of(std::span<const int> ranks,
                                               const models::Schedule& schedule,
                                               const Routes& routes,
                                               std::int64_t most_messages = most_prepared_messages,
                                               Load load = Load::sum);

// Throws TooManyMessages where that takes more than `most_messages`.
[[nodiscard]] StepProgram make_step_program(const models::Schedule& schedule, const Routes& routes,
                                            Collapse collapse = Collapse::equal_positions,
                                            std::int64_t most_messages = most_prepared_messages,
                                            Load load = Load::sum);

}  // namespace paceline::simulator

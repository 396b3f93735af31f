// A schedule in GOAL, the text format that LogGOPSim and ATLAHS simulate (docs/formats.md). The
// grammar is that of LogGOPSim's txt2bin.re: Hoefler, Siebert, Lumsdaine 2009, "Group Operation
// Assembly Language"; Hoefler, Schneider, Lumsdaine 2010, "LogGOPSim".
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "models/base/units.h"
#include "models/collective/schedule.h"

namespace paceline::models {

struct GoalOptions {
  std::string title = {};     // one line of the comment on top
  std::int64_t elements = 0;  // of the bucket; messages are whole elements
  int bytes_per_element = 4;
  std::optional<SecondsPerByte> gamma = {};  // of a reduction; without it, reductions are left out
};

// Writes the file piece by piece, in order: a header, then one piece for each rank. Memory: the
// messages and the text of one rank. Throws InputError, before the first piece, where there are
// more than most_exported_messages.
//
// Each rank runs synchronous steps: all messages of a step start when the rank is done with the
// last step in which it took part. It is done with a step when its messages are sent and received,
// and what it received is reduced.
//  - "sS_TO" and "rS_FROM" (with "_i" where a step has several) are the messages of step S, counted
//    from 1.
//  - "cS" is the reduction after step S: gamma for every byte, in whole nanoseconds.
//  - "jS" is a calc of 0 that joins the ends of a step that has more than two, so that the number
//    of lines grows with the messages and not with their square.
//  - A tag counts the messages from one rank to another, so that matching is unambiguous in any
//    order. Sends of a step are in the order of the distance to the receiver, around all ranks.
// Empty messages are left out. A rank that has no others holds one calc of 0.
void write_goal(const Schedule& schedule, const GoalOptions& options,
                const std::function<void(std::string_view)>& write);

// The whole file as one text.
[[nodiscard]] std::string goal(const Schedule& schedule, const GoalOptions& options);

}  // namespace paceline::models

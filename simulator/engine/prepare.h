// A schedule on a cluster, run by run of alike steps, between the positions that stand for all
// ranks: what the step engine and the flow engine are made from.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "models/base/error.h"
#include "models/collective/schedule.h"
#include "simulator/engine/routes.h"

namespace paceline::simulator {

// One of `repeats` alike steps. Sizes are fractions of the bucket.
struct PreparedRun {
  struct Message {
    int from = 0;  // positions
    int to = 0;
    double fraction = 0;
    double alpha_s = 0;
    std::size_t first_link = 0;  // of links
    std::size_t end_link = 0;
  };
  // A position that sends or receives, and what it reduces.
  struct Participant {
    int position = 0;
    double reduced = 0;
  };
  std::vector<Message> messages;
  std::vector<Participant> participants;
  std::vector<int> links;  // that stand for those of the messages' ways
  int repeats = 1;

  [[nodiscard]] std::span<const int> path(const Message& m) const {
    return std::span(links).subspan(m.first_link, m.end_link - m.first_link);
  }
};

// Messages that are prepared at most: about 200 MB in the step engine.
inline constexpr std::size_t most_prepared_messages = 8'000'000;

// A schedule whose ranks cannot be collapsed and have more messages than that.
class TooManyMessages : public InputError {
 public:
  using InputError::InputError;
};

// Calls sink(const PreparedRun&) for each run, in order; the run is reused. `positions` must be
// collapsed_ranks() or all ranks. Throws TooManyMessages beyond most_prepared_messages.
void for_each_run(const models::Schedule& schedule, const Routes& routes, int positions,
                  const std::function<void(const PreparedRun&)>& sink);

}  // namespace paceline::simulator

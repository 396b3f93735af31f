// A schedule on a cluster, run by run of alike steps, between the positions that stand for all
// ranks: what the step engine and the flow engine are made from.
#pragma once

#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "models/base/error.h"
#include "models/collective/schedule.h"
#include "simulator/engine/routes.h"

namespace paceline::simulator {

// One of `repeats` alike steps. Sizes are fractions of the bucket.
struct PreparedRun {
  struct Message {
    int from = 0;  // positions; `from` is the rank itself too
    int to = 0;
    int to_rank = 0;
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
  // That stand for those of the messages' ways, and by how much the true ones are shifted
  // (Routes::shift).
  std::vector<int> links;
  std::vector<int> shifts;
  int repeats = 1;

  [[nodiscard]] std::span<const int> path(const Message& m) const {
    return std::span(links).subspan(m.first_link, m.end_link - m.first_link);
  }
};

// Numbers links in the order in which they are met, so that what is kept for each of them does not
// grow with the cluster where few stand for all.
class LinkNumbers {
 public:
  LinkNumbers(const Routes& routes, int positions);
  // A link has a new number if it is the count() from before the call.
  [[nodiscard]] int of(int link);
  [[nodiscard]] int count() const { return static_cast<int>(met_.size()); }
  // Link number i is links()[i].
  [[nodiscard]] std::span<const int> links() const { return met_; }

 private:
  std::vector<int> met_;
  std::vector<int> all_;  // of each link, -1 if not met; where no rank is collapsed
  std::unordered_map<int, int> standing_;  // else
};

// Finds out whether messages of a schedule by itself ever share a link, from its runs. Keeps a
// reference to `routes`.
//
// They do not if in no step two messages pass it, and all that do over time have one sender, or one
// receiver, who waits for each of them before the next.
class Sharing {
 public:
  Sharing(const Routes& routes, int positions)
      : routes_(&routes), positions_(positions), numbers_(routes, positions) {}
  void add(const PreparedRun& run);
  [[nodiscard]] bool is_shared(int link);
  [[nodiscard]] bool any() const;

 private:
  struct Users {
    int sender;
    int receiver;
    bool one_sender = true;
    bool one_receiver = true;
    bool at_once = false;  // two in one step
    std::size_t last_run = 0;
    [[nodiscard]] bool share() const { return at_once || (!one_sender && !one_receiver); }
  };
  const Routes* routes_;
  int positions_;
  std::size_t runs_ = 0;
  LinkNumbers numbers_;
  std::vector<Users> users_;
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

// Does a schedule by itself ever have two messages on one link at the same time, whenever its ranks
// are ready? Throws like for_each_run().
[[nodiscard]] bool shares_links(const models::Schedule& schedule, const CommunicationCost& cost);

}  // namespace paceline::simulator

// A schedule on a cluster, run by run of alike steps, between the positions that stand for all
// ranks: what the step engine and the flow engine are made from.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "models/base/error.h"
#include "models/collective/schedule.h"
#include "simulator/engine/routes.h"

namespace paceline::simulator {

// What happens in each of `repeats` alike steps. Sizes are fractions of the bucket.
struct PreparedRun {
  // All alike messages that the rank of one position sends to the ranks of another: as many as
  // `count`, over links that the same ones stand for.
  struct Message {
    int from = 0;  // positions
    int to = 0;
    int from_rank = 0;  // that represents its position
    int to_rank = 0;    // of the first of the messages
    double fraction = 0;
    Routes::Distance distance = {};
    std::size_t first_link = 0;  // of links
    std::size_t end_link = 0;
    int count = 1;
  };
  // A position that sends or receives, and what each of its ranks reduces.
  struct Participant {
    int position = 0;
    double reduced = 0;
  };
  std::vector<Message> messages;
  std::vector<Participant> participants;
  // The links that stand for those of the messages' ways; by how much the true ones are shifted
  // (Routes::shift); and how many messages of the kind pass the link that stands for the others.
  std::vector<int> links;
  std::vector<int> shifts;
  std::vector<double> weights;
  int repeats = 1;

  [[nodiscard]] std::span<const int> path(const Message& m) const {
    return std::span(links).subspan(m.first_link, m.end_link - m.first_link);
  }
};

// Numbers links in the order in which they are met, so that what is kept for each of them does not
// grow with the cluster where few stand for all.
class LinkNumbers {
 public:
  LinkNumbers(const Routes& routes, const Positions& positions);
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
  Sharing(const Routes& routes, const Positions& positions)
      : routes_(&routes), numbers_(routes, positions) {}
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
  std::size_t runs_ = 0;
  LinkNumbers numbers_;
  std::vector<Users> users_;
};

// Messages that are prepared at most: about 200 MB in the step engine.
inline constexpr std::int64_t most_prepared_messages = 8'000'000;

// A schedule whose ranks cannot be collapsed and have more messages than that.
class TooManyMessages : public InputError {
 public:
  using InputError::InputError;
};

// Calls sink(run) for each run in order, until it returns false; the run is reused. `positions` must
// be positions_of() the schedule, or all ranks. Throws TooManyMessages beyond `most` messages.
void for_each_run(const models::Schedule& schedule, const Routes& routes,
                  const Positions& positions, const std::function<bool(const PreparedRun&)>& sink,
                  std::int64_t most = most_prepared_messages);

// The same for each step by itself, also where it is like the one before: sink(run) has one repeat.
void for_each_step(const models::Schedule& schedule, const Routes& routes,
                   const Positions& positions, const std::function<void(const PreparedRun&)>& sink,
                   std::int64_t most = most_prepared_messages);

// The runs of what `ranks`, by rising number, send and receive, each rank by itself. What passes
// between others is left out.
void for_each_run_of(std::span<const int> ranks, const models::Schedule& schedule,
                     const Routes& routes, const std::function<void(const PreparedRun&)>& sink,
                     std::int64_t most = most_prepared_messages);

// Throws TooManyMessages where a schedule has certainly more than `most`, before they are counted one
// by one.
void check_messages(const models::Schedule& schedule, const Routes& routes,
                    const Positions& positions, std::int64_t most);

// The error of a schedule that has more messages than `most`.
[[nodiscard]] TooManyMessages too_many_messages(const models::Schedule& schedule,
                                                const Routes& routes, std::int64_t most);

// Does a schedule by itself ever have two messages on one link at the same time, whenever its ranks
// are ready? Throws like for_each_run().
[[nodiscard]] bool shares_links(const models::Schedule& schedule, const CommunicationCost& cost);
[[nodiscard]] bool shares_links(const models::Schedule& schedule, const Routes& routes);

}  // namespace paceline::simulator

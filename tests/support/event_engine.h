// A second slow judge, written from the headers network_engine.h and step_engine.h alone: ranks are actors that
// post the messages of their next step and wait, and a queue of events moves time. There is no
// loop over steps, and schedules are read by rank (for_each_send, for_each_receive).
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "models/collective/enumerate.h"
#include "simulator/cost/communication_cost.h"
#include "tests/support/reference_routes.h"

namespace paceline::test {

class EventEngine {
 public:
  EventEngine(const models::Schedule& schedule, const simulator::CommunicationCost& cost,
              double bytes)
      : schedule_(schedule), cost_(cost), routes_(cost, schedule.ranks()), bytes_(bytes) {}

  // When each rank is done, if rank r is ready at ready[r]; infinity if it waits for ever.
  [[nodiscard]] std::vector<double> completion(const std::vector<double>& ready) {
    actors_.assign(ready.size(), {});
    for (std::size_t rank = 0; rank < ready.size(); ++rank)
      events_.push({ready[rank], Kind::done, static_cast<int>(rank), -1, -1});
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.kind == Kind::done) {
        done(event.rank, event.time);
      } else {
        arrived(event);
      }
    }
    std::vector<double> finish;
    for (const Actor& actor : actors_) {
      const bool finished = actor.step == schedule_.steps();
      finish.push_back(finished ? actor.time : std::numeric_limits<double>::infinity());
    }
    return finish;
  }

 private:
  // An arrival at `rank` from `peer` is an event of the receiver that also frees the sender.
  enum class Kind { arrival, done };
  struct Event {
    double time;
    Kind kind;
    int rank;
    int peer;
    int step;
    bool operator>(const Event& other) const {
      return std::tie(time, kind, rank, peer) >
             std::tie(other.time, other.kind, other.rank, other.peer);
    }
  };
  struct Actor {
    int step = -1;         // that it takes part in now
    double time = 0;       // when it was done with the step before
    int missing = 0;       // messages of the step, sent or received, that have not arrived
    double last_sent = 0;  // arrival of the last message that it sent, and that it received
    double last_received = 0;
  };

  using Message = models::Transfer<double>;
  [[nodiscard]] std::vector<Message> sends(int rank, int step) const {
    std::vector<Message> list;
    models::for_each_send(schedule_, rank, step, models::Span<double>{0.0, bytes_},
                          [&](const Message& m) { list.push_back(m); });
    return list;
  }
  [[nodiscard]] std::vector<Message> receives(int rank, int step) const {
    std::vector<Message> list;
    models::for_each_receive(schedule_, rank, step, models::Span<double>{0.0, bytes_},
                             [&](const Message& m) { list.push_back(m); });
    return list;
  }
  // Seconds that each link is busy in the step.
  [[nodiscard]] const std::map<std::string, double>& loads(int step) {
    const auto [entry, is_new] = loads_.try_emplace(step);
    for (int rank = 0; is_new && rank < schedule_.ranks(); ++rank) {
      for (const Message& m : sends(rank, step)) {
        for (const auto& [link, beta_s] : routes_.way(m.from, m.to).links)
          entry->second[link] += m.span.size * beta_s;
      }
    }
    return entry->second;
  }

  void done(int rank, double time) {
    Actor& actor = actors_[static_cast<std::size_t>(rank)];
    actor.time = actor.last_sent = actor.last_received = time;
    ++actor.step;
    if (actor.step == schedule_.steps()) return;
    const auto out = sends(rank, actor.step);
    const auto in = receives(rank, actor.step);
    actor.missing = static_cast<int>(out.size() + in.size());
    if (actor.missing == 0) return events_.push({time, Kind::done, rank, -1, -1});
    // The rank that comes later starts the message. A peer that is not in this step yet does it then.
    for (const Message& m : out) start_if_both_are_there(m, m.to, actor.step);
    for (const Message& m : in) start_if_both_are_there(m, m.from, actor.step);
  }

  void start_if_both_are_there(const Message& m, int peer, int step) {
    const Actor& other = actors_[static_cast<std::size_t>(peer)];
    if (other.step != step) return;
    const double start = std::max(actors_[static_cast<std::size_t>(m.from)].time,
                                  actors_[static_cast<std::size_t>(m.to)].time);
    const ReferenceRoutes::Way way = routes_.way(m.from, m.to);
    double transfer = 0;
    for (const auto& [link, beta_s] : way.links)
      transfer = std::max(transfer, loads(step).at(link));
    events_.push({start + way.alpha_s + transfer, Kind::arrival, m.to, m.from, step});
  }

  void arrived(const Event& event) {
    Actor& receiver = actors_[static_cast<std::size_t>(event.rank)];
    Actor& sender = actors_[static_cast<std::size_t>(event.peer)];
    receiver.last_received = std::max(receiver.last_received, event.time);
    sender.last_sent = std::max(sender.last_sent, event.time);
    if (--receiver.missing == 0) end_step(event.rank);
    if (--sender.missing == 0) end_step(event.peer);
  }

  void end_step(int rank) {
    const Actor& actor = actors_[static_cast<std::size_t>(rank)];
    double reduced = 0;
    for (const Message& m : receives(rank, actor.step)) reduced += m.reduce ? m.span.size : 0;
    const double end =
        std::max(actor.last_sent, actor.last_received + reduced * cost_.gamma.value());
    events_.push({end, Kind::done, rank, -1, -1});
  }

  models::Schedule schedule_;
  simulator::CommunicationCost cost_;
  ReferenceRoutes routes_;
  double bytes_;
  std::vector<Actor> actors_;
  std::map<int, std::map<std::string, double>> loads_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace paceline::test

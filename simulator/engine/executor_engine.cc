// Tests: tests/simulator/executor_engine_test.cc,
// tests/agreement/executor_engine_agreement_test.cc.
//
// IMPLEMENTATION. A collective in flight is an Instance of a Compiled schedule. All that happens is
// an event in one queue. Each link has a time from which it is free. A quantum passes the sender's
// own links, its port and its NIC, when it leaves, and the next quantum follows when those are
// through with it. It passes links of the fabric when its first byte reaches them, and then the
// receiver's own links. No link is therefore held for later that another quantum could use before.
#include "simulator/engine/executor_engine.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/collective/rank_program.h"
#include "simulator/engine/matched_programs.h"
#include "simulator/engine/routes.h"

namespace paceline::simulator {
namespace {

using models::RankProgram;

constexpr double least_quantum = 16384;
constexpr double most_quanta = 1024;  // of a bucket
constexpr std::uint32_t none_waiting = std::numeric_limits<std::uint32_t>::max();

// A schedule for a bucket of one size.
struct Compiled {
  MatchedPrograms matched;
  std::vector<std::vector<int>> connections;  // [rank][i] carries send i of the rank
  double quantum = 0;                         // bytes
};

struct Message {
  int instance = 0;
  int to = 0;
  std::uint32_t receive = 0;
  int connection = 0;
  double bytes = 0;    // without its header
  double on_wire = 0;  // bytes with its header
  double left = 0;     // bytes of on_wire that have not left the rank yet
  double quantum = 0;
};

// The way from one rank to another.
struct Connection {
  std::vector<int> links;
  std::size_t of_sender = 1;    // how many links at the head are the sender's own
  std::size_t to_receiver = 1;  // index of the first link that is the receiver's own
  // Within a node, the whole alpha. Between nodes, what the path adds to the alpha of the NIC.
  double alpha_s = 0;
  bool is_nic = false;  // between nodes: alpha depends on the message's size
};

// A part of a message on its way.
struct Quantum {
  Message message;  // as it was when the quantum left
  double bytes = 0;
  double first_byte_s = 0;  // when the first byte reaches the next link
  double last_byte_s = 0;   // when the last byte is through the link before
  std::size_t link = 0;     // index of the next link of the connection
};

// What an event is.
enum class What : char {
  launch,  // a rank may start its part of a collective
  leave,   // a message enters its rank's queue
  serve,   // a rank's queue may send its next quantum
  reach,   // a quantum reaches a link of the fabric
  near,    // a message would arrive now if no other were on its way
  arrive,  // a message arrives
  land     // a rank is through with a reduction, or with its last send
};

struct Event {
  double time;
  std::int64_t order;
  What what;
  int instance;
  int rank;
  std::uint32_t index;
  bool operator>(const Event& other) const {
    return time != other.time ? time > other.time : order > other.order;
  }
};

}  // namespace

class ExecutorEngine::Simulation final : public Launcher {
 public:
  Simulation(std::span<const models::Schedule> schedules, const CommunicationCost& cost,
             std::int64_t element_bytes)
      : schedules_(schedules.begin(), schedules.end()),
        cost_(cost),
        element_bytes_(element_bytes),
        ranks_(schedules.front().ranks()),
        routes_(cost, ranks_),
        gap_s_(cost.transport->message_gap.value()),
        header_bytes_(cost.transport->message_header.value()),
        busy_until_(to_size(ranks_)),
        queues_(to_size(ranks_)),
        free_at_(to_size(routes_.links())) {
    for (const models::Schedule& schedule : schedules_)
      PACELINE_ASSERT(schedule.ranks() == ranks_, "all schedules are over the same ranks");
  }

  Completion completion(int schedule, Bytes bucket, std::span<const Seconds> ready) {
    reset();
    finish_.assign(to_size(ranks_), 0);
    const int instance = make_instance(0, schedule, bucket);
    for (int rank = 0; rank < ranks_; ++rank)
      add({ready.empty() ? 0 : ready[to_size(rank)].value(), 0, What::launch, instance, rank, 0});
    simulate([](int, Seconds, Launcher&) {});
    Completion completion;
    for (const double finish : finish_) completion.finish.emplace_back(finish);
    return completion;
  }

  void run(const std::function<void(Launcher&)>& begin, const Finished& finished) {
    reset();
    finish_.assign(to_size(ranks_), 0);
    begin(*this);
    simulate(finished);
  }

  void launch(int id, const Launch& collective) override {
    PACELINE_ASSERT(collective.schedule >= 0 && to_size(collective.schedule) < schedules_.size(),
                    "a collective is one of the engine's schedules");
    const int instance = make_instance(id, collective.schedule, collective.bytes);
    const double time = std::max(now_, collective.at.value());
    for (int rank = 0; rank < ranks_; ++rank) add({time, 0, What::launch, instance, rank, 0});
  }

  std::vector<std::vector<Seconds>> in_order(std::span<const Queued> collectives,
                                             std::span<const Seconds> late) {
    reset();
    finish_.assign(to_size(ranks_), 0);
    std::map<int, int> last;  // the last instance of each stream
    for (std::size_t i = 0; i < collectives.size(); ++i) {
      const Launch& launch = collectives[i].collective;
      const int instance = make_instance(static_cast<int>(i), launch.schedule, launch.bytes);
      const auto [before, is_first] = last.try_emplace(collectives[i].stream, instance);
      if (!is_first) {
        instances_[to_size(before->second)].next = instance;
        for (RankState& rank : instances_[to_size(instance)].ranks) rank.waits_for = 2;
        before->second = instance;
      }
      instances_[to_size(instance)].ends.resize(to_size(ranks_));
      for (int rank = 0; rank < ranks_; ++rank) {
        const Seconds start = launch.at + (late.empty() ? Seconds{0} : late[to_size(rank)]);
        add({start.value(), 0, What::launch, instance, rank, 0});
      }
    }
    simulate([](int, Seconds, Launcher&) {});
    std::vector<std::vector<Seconds>> ends;
    for (Instance& instance : instances_) ends.push_back(std::move(instance.ends));
    return ends;
  }

  std::vector<std::vector<ExecutorAction>> actions(int schedule, Bytes bucket) {
    actions_.assign(to_size(ranks_), {});
    (void)completion(schedule, bucket, {});
    return std::exchange(actions_, {});
  }

  [[nodiscard]] std::int64_t messages() const { return messages_; }
  [[nodiscard]] int ranks() const { return ranks_; }

 private:
  struct RankState {
    std::uint32_t landed = 0;
    std::uint32_t issued = 0;
    char waits_for = 1;  // 1: for its time; 2: also for the collective before it on its stream
    bool is_ready = false;
    bool lands = false;  // the rank is reducing receive `landed`, or issuing its last sends
    bool is_done = false;
    std::vector<char> arrived;  // for each receive, whether its message has arrived
  };
  // The messages that wait to leave a rank.
  struct Queue {
    std::deque<Message> messages;
    bool is_busy = false;
  };
  struct Instance {
    int id = 0;
    int next = -1;  // the instance behind it on its stream; -1 if there is none
    const Compiled* compiled = nullptr;
    int ranks_left = 0;
    std::vector<RankState> ranks;
    std::vector<Seconds> ends = {};  // when each rank is done; empty if not asked for
  };

  void reset() {
    PACELINE_ASSERT(events_.empty(), "every collective came to its end");
    now_ = 0;
    std::fill(free_at_.begin(), free_at_.end(), 0.0);
    std::fill(busy_until_.begin(), busy_until_.end(), 0.0);
    instances_.clear();
  }

  void add(Event event) {
    event.order = order_++;
    events_.push(event);
  }

  const Compiled& compiled(int schedule, std::int64_t bytes) {
    const auto [entry, is_new] = compiled_.try_emplace({schedule, bytes});
    if (!is_new) return entry->second;
    Compiled& made = entry->second;
    made.quantum = std::max(least_quantum, static_cast<double>(bytes) / most_quanta);
    made.matched = match_programs(schedules_[to_size(schedule)], bytes, element_bytes_,
                                  cost_.transport->message_sizes);
    made.connections.resize(to_size(ranks_));
    for (int rank = 0; rank < ranks_; ++rank) {
      for (const RankProgram::Send& send : made.matched.programs[to_size(rank)].sends)
        made.connections[to_size(rank)].push_back(connection(rank, send.to));
    }
    return made;
  }

  int connection(int from, int to) {
    const auto [entry, is_new] =
        numbers_.try_emplace({from, to}, static_cast<int>(connections_.size()));
    if (!is_new) return entry->second;
    Connection made;
    made.alpha_s = routes_.path(from, to, made.links);
    made.of_sender = routes_.links_of_sender(from, to);
    made.to_receiver =
        made.links.size() - std::min(made.of_sender, made.links.size() - made.of_sender);
    made.is_nic = routes_.between_nodes(from, to);
    if (made.is_nic) made.alpha_s -= cost_.nic.alpha.value();
    connections_.push_back(std::move(made));
    return entry->second;
  }

  int make_instance(int id, int schedule, Bytes bucket) {
    Instance instance;
    instance.id = id;
    instance.compiled = &compiled(schedule, std::llround(bucket.value()));
    instance.ranks_left = ranks_;
    instance.ranks.resize(to_size(ranks_));
    for (int rank = 0; rank < ranks_; ++rank) {
      instance.ranks[to_size(rank)].arrived.assign(
          instance.compiled->matched.programs[to_size(rank)].receives.size(), 0);
    }
    instances_.push_back(std::move(instance));
    return static_cast<int>(instances_.size()) - 1;
  }

  void simulate(const Finished& finished) {
    while (!events_.empty()) {
      const Event next = events_.top();
      events_.pop();
      now_ = std::max(now_, next.time);
      handle(next);
      for (std::size_t i = 0; i < done_.size(); ++i) {
        Instance& instance = instances_[to_size(done_[i])];
        instance.ranks.clear();
        instance.ranks.shrink_to_fit();
        finished(instance.id, Seconds{now_}, *this);
      }
      done_.clear();
    }
  }

  void handle(const Event& event) {
    if (event.what == What::serve) return serve(event.rank);
    if (event.what == What::reach) return go_on(waiting_[event.index], event.index);
    RankState& rank = instances_[to_size(event.instance)].ranks[to_size(event.rank)];
    switch (event.what) {
      case What::serve:
      case What::reach:
        break;
      case What::launch:
        release(event.instance, event.rank);
        break;
      case What::leave:
        enter_queue(event);
        break;
      case What::near:
        arrive_among_others(event);
        break;
      case What::arrive:
        --on_the_way_;
        rank.arrived[event.index] = 1;
        advance(event.instance, event.rank);
        break;
      case What::land:
        rank.lands = false;
        landed(event.instance, event.rank);
        advance(event.instance, event.rank);
        break;
    }
  }

  [[nodiscard]] const RankProgram& program(const Event& event) const {
    return instances_[to_size(event.instance)].compiled->matched.programs[to_size(event.rank)];
  }

  // One of the things has come that a rank waits for before it starts its part.
  void release(int instance, int rank) {
    Instance& i = instances_[to_size(instance)];
    RankState& state = i.ranks[to_size(rank)];
    if (--state.waits_for > 0) return;
    state.is_ready = true;
    issue(instance, rank, i.compiled->matched.programs[to_size(rank)].sends_at_start);
    advance(instance, rank);
  }

  // Lands what has arrived, in order.
  void advance(int instance, int rank) {
    Instance& i = instances_[to_size(instance)];
    RankState& state = i.ranks[to_size(rank)];
    const RankProgram& program = i.compiled->matched.programs[to_size(rank)];
    if (!state.is_ready || state.lands || state.is_done) return;
    while (state.landed < program.receives.size()) {
      const RankProgram::Receive& receive = program.receives[state.landed];
      if (state.arrived[state.landed] == 0 || !is_free(program, receive, state)) return;
      if (receive.reduce) {
        double& busy = busy_until_[to_size(rank)];
        busy = std::max(busy, now_) + cost_.gamma.value() * bytes_of(receive.span);
        if (busy > now_) {
          state.lands = true;
          add({busy, 0, What::land, instance, rank, 0});
          return;
        }
      }
      landed(instance, rank);
    }
    state.is_done = true;
    finish_[to_size(rank)] = std::max(now_, busy_until_[to_size(rank)]);
    if (finish_[to_size(rank)] > now_) {
      // Its last sends are still being issued.
      state.is_done = false;
      state.lands = true;
      add({finish_[to_size(rank)], 0, What::land, instance, rank, 1});
      return;
    }
    const int next = i.next;
    if (!i.ends.empty()) i.ends[to_size(rank)] = Seconds{now_};
    if (--i.ranks_left == 0) done_.push_back(instance);
    if (next >= 0) release(next, rank);
  }

  // Whether all sends that read what a receive changes are issued: a transport has its own copy of
  // what it was given.
  static bool is_free(const RankProgram& program, const RankProgram::Receive& receive,
                      const RankState& state) {
    for (std::uint32_t i = receive.sends_before.first; i < receive.sends_before.last; ++i) {
      if (program.awaited[i] >= state.issued) return false;
    }
    return true;
  }

  void landed(int instance, int rank) {
    Instance& i = instances_[to_size(instance)];
    RankState& state = i.ranks[to_size(rank)];
    const RankProgram& program = i.compiled->matched.programs[to_size(rank)];
    if (state.landed == program.receives.size()) return;
    const RankProgram::Receive& receive = program.receives[state.landed++];
    record(rank, ExecutorAction::Kind::landing, receive.from, receive.span, now_);
    issue(instance, rank, receive.sends_after);
  }

  void issue(int instance, int rank, std::uint32_t end) {
    Instance& i = instances_[to_size(instance)];
    RankState& state = i.ranks[to_size(rank)];
    const RankProgram& program = i.compiled->matched.programs[to_size(rank)];
    for (; state.issued < end; ++state.issued) {
      double& busy = busy_until_[to_size(rank)];
      busy = std::max(busy, now_) + gap_s_;
      const RankProgram::Send& send = program.sends[state.issued];
      record(rank, ExecutorAction::Kind::send, send.to, send.span, busy);
      const Event leave{busy, 0, What::leave, instance, rank, state.issued};
      if (busy > now_) {
        add(leave);
      } else {
        enter_queue(leave);
      }
    }
  }

  // Keeps what a rank did, where it is asked for.
  void record(int rank, ExecutorAction::Kind kind, int peer, models::Elements span, double time_s) {
    if (actions_.empty()) return;
    actions_[to_size(rank)].push_back({kind, peer, Bytes{bytes_of(span)}, Seconds{time_s}});
  }

  [[nodiscard]] double bytes_of(models::Elements span) const {
    return static_cast<double>(span.size * element_bytes_);
  }

  void enter_queue(const Event& event) {
    const Instance& instance = instances_[to_size(event.instance)];
    const Compiled& compiled = *instance.compiled;
    const RankProgram::Send& send =
        compiled.matched.programs[to_size(event.rank)].sends[event.index];
    const int connection = compiled.connections[to_size(event.rank)][event.index];
    const double bytes = bytes_of(send.span);
    const bool is_nic = connections_[to_size(connection)].is_nic;
    const double on_wire = bytes + (is_nic ? header_bytes_ : 0);
    Queue& queue = queues_[to_size(event.rank)];
    queue.messages.push_back(
        {.instance = event.instance,
         .to = send.to,
         .receive = compiled.matched.receives[to_size(event.rank)][event.index],
         .connection = connection,
         .bytes = bytes,
         .on_wire = on_wire,
         .left = on_wire,
         .quantum = compiled.quantum});
    ++messages_;
    if (!queue.is_busy) serve(event.rank);
  }

  // Sends a quantum of the next message, and comes back when it has left.
  void serve(int rank) {
    Queue& queue = queues_[to_size(rank)];
    queue.is_busy = !queue.messages.empty();
    if (!queue.is_busy) return;
    Message& message = queue.messages.front();
    if (message.left == message.on_wire) ++on_the_way_;
    const Connection& connection = connections_[to_size(message.connection)];
    // A header makes no quantum of its own.
    const bool is_last = message.left <= message.quantum + header_bytes_;
    Quantum quantum{.message = {},
                    .bytes = is_last ? message.left : message.quantum,
                    .first_byte_s = now_,
                    .last_byte_s = now_};
    message.left -= quantum.bytes;
    quantum.message = message;
    while (quantum.link < connection.of_sender) pass(quantum, connection);
    add({quantum.last_byte_s, 0, What::serve, 0, rank, 0});
    if (message.left <= 0) {
      queue.messages.pop_front();
    } else if (cost_.transport->is_fair) {
      let_others_go_first(queue);
    }
    go_on(quantum, none_waiting);
  }

  // Takes the quantum through its next link.
  void pass(Quantum& quantum, const Connection& connection) {
    const int link = connection.links[quantum.link++];
    const double time = routes_.beta_s(link) * quantum.bytes;
    if (routes_.is_shared(link)) {
      double& free_at = free_at_[to_size(link)];
      quantum.first_byte_s = std::max(quantum.first_byte_s, free_at);
      free_at = std::max(quantum.first_byte_s + time, quantum.last_byte_s);
      quantum.last_byte_s = free_at;
    } else {
      quantum.last_byte_s = std::max(quantum.first_byte_s + time, quantum.last_byte_s);
    }
  }

  // Takes the quantum through all links that its first byte has reached. `place` is where the
  // quantum waited, or none_waiting.
  void go_on(Quantum quantum, std::uint32_t place) {
    const Connection& connection = connections_[to_size(quantum.message.connection)];
    while (quantum.link < connection.to_receiver && quantum.first_byte_s <= now_)
      pass(quantum, connection);
    // Other quanta may use the first of the receiver's links before this one reaches it.
    const bool waits = quantum.link < connection.links.size() &&
                       connection.to_receiver > connection.of_sender && quantum.first_byte_s > now_;
    if (waits) {
      if (place == none_waiting) place = free_place();
      waiting_[place] = quantum;
      add({quantum.first_byte_s, 0, What::reach, 0, 0, place});
      return;
    }
    while (quantum.link < connection.links.size()) pass(quantum, connection);
    if (place != none_waiting) free_places_.push_back(place);
    if (quantum.message.left <= 0) arrive_later(quantum, connection);
  }

  std::uint32_t free_place() {
    if (free_places_.empty()) {
      waiting_.emplace_back();
      return static_cast<std::uint32_t>(waiting_.size() - 1);
    }
    const std::uint32_t place = free_places_.back();
    free_places_.pop_back();
    return place;
  }

  // The last quantum of a message is through.
  void arrive_later(const Quantum& last, const Connection& connection) {
    const Message& message = last.message;
    double alpha_s = connection.alpha_s;
    if (connection.is_nic) alpha_s += cost_.nic_alpha_alone(Bytes{message.bytes}).value();
    const bool may_take_longer = connection.is_nic && !cost_.transport->nic_alone.empty();
    add({last.last_byte_s + alpha_s, 0, may_take_longer ? What::near : What::arrive,
         message.instance, message.to, message.receive});
  }

  // Adds the part of alpha that other messages cause. Alpha grows with the number of messages on
  // their way, linearly, from that of a message alone to that where each rank has one on its way.
  void arrive_among_others(const Event& event) {
    const RankProgram::Receive& receive = program(event).receives[event.index];
    const Bytes bytes{bytes_of(receive.span)};
    const double share = std::min(1.0, (on_the_way_ - 1.0) / std::max(1, ranks_ - 1));
    const double more_s = (cost_.nic_alpha(bytes) - cost_.nic_alpha_alone(bytes)).value();
    add({now_ + share * more_s, 0, What::arrive, event.instance, event.rank, event.index});
  }

  // Brings the next message to another receiver to the front of the queue. Messages to one receiver
  // keep their order.
  static void let_others_go_first(Queue& queue) {
    const int to = queue.messages.front().to;
    const auto other = std::find_if(queue.messages.begin(), queue.messages.end(),
                                    [to](const Message& m) { return m.to != to; });
    if (other == queue.messages.end()) return;
    std::rotate(queue.messages.begin(), other, other + 1);
  }

  std::vector<models::Schedule> schedules_;
  CommunicationCost cost_;
  std::int64_t element_bytes_;
  int ranks_;
  Routes routes_;
  double gap_s_;
  double header_bytes_;
  int on_the_way_ = 0;  // messages
  std::map<std::pair<int, std::int64_t>, Compiled> compiled_;
  std::map<std::pair<int, int>, int> numbers_;  // of connections
  std::vector<Connection> connections_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t order_ = 0;
  double now_ = 0;
  std::vector<double> busy_until_;          // of each rank
  std::vector<Queue> queues_;               // of each rank
  std::vector<double> free_at_;             // of each link
  std::vector<Quantum> waiting_;            // for links of the fabric
  std::vector<std::uint32_t> free_places_;  // in `waiting_`
  std::deque<Instance> instances_;
  std::vector<double> finish_;  // of each rank, in the collective that it finished last
  std::vector<int> done_;
  std::int64_t messages_ = 0;
  std::vector<std::vector<ExecutorAction>> actions_;  // of each rank; empty if not asked for
};

ExecutorEngine::ExecutorEngine(std::span<const models::Schedule> schedules,
                               const CommunicationCost& cost, std::int64_t element_bytes) {
  PACELINE_ASSERT(element_bytes > 0, "an element has a size");
  PACELINE_ASSERT(!schedules.empty(), "there is a schedule to follow");
  PACELINE_ASSERT(cost.transport.has_value(), "the executor runs on a transport");
  simulation_ = std::make_unique<Simulation>(schedules, cost, element_bytes);
}

ExecutorEngine::~ExecutorEngine() = default;

Completion ExecutorEngine::completion(int schedule, Bytes bucket) {
  return simulation_->completion(schedule, bucket, {});
}

Completion ExecutorEngine::completion(int schedule, Bytes bucket, std::span<const Seconds> ready) {
  return simulation_->completion(schedule, bucket, ready);
}

void ExecutorEngine::run(const std::function<void(Launcher&)>& begin, const Finished& finished) {
  simulation_->run(begin, finished);
}

std::vector<std::vector<Seconds>> ExecutorEngine::in_order(std::span<const Queued> collectives,
                                                           std::span<const Seconds> late) {
  PACELINE_ASSERT(late.empty() || to_size(simulation_->ranks()) == late.size(),
                  "every rank is late by as much as it is");
  return simulation_->in_order(collectives, late);
}

std::vector<std::vector<ExecutorAction>> ExecutorEngine::actions(int schedule, Bytes bucket) {
  return simulation_->actions(schedule, bucket);
}

std::int64_t ExecutorEngine::messages() const {
  return simulation_->messages();
}

bool suits_executor_engine(const models::Schedule& schedule) {
  // A rank sends about one message a step, in a few segments.
  constexpr std::int64_t most_transfers = 1'000'000;
  return static_cast<std::int64_t>(schedule.steps()) * schedule.ranks() <= most_transfers;
}

}  // namespace paceline::simulator

// Tests: tests/simulator/executor_engine_test.cc.
//
// IMPLEMENTATION. A collective in flight is an Instance of a Compiled schedule: the programs of all
// ranks for one bucket size, and which receive each send meets. Connections are flows of
// FairSharing, with a slot each in a heap of the times at which the message that is on them has
// left; everything else that happens is an event in a queue.
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
#include "models/collective/program.h"
#include "simulator/engine/event_heap.h"
#include "simulator/engine/max_min.h"
#include "simulator/engine/routes.h"

namespace paceline::simulator {
namespace {

using models::Program;

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

// The programs of all ranks for a bucket of one size; elements are bytes.
struct Compiled {
  struct Meeting {
    int connection = 0;
    std::uint32_t receive = 0;  // of the receiver's program
  };
  std::vector<Program> programs;
  std::vector<std::vector<Meeting>> meetings;  // of each rank's sends
};

struct Message {
  int instance = 0;
  int to = 0;
  std::uint32_t receive = 0;
  double bytes = 0;
};

// What goes from one rank to another, one message at a time.
struct Connection {
  std::deque<Message> waiting;  // the first is on its way
  double remaining = 0;         // bytes of that, at `since`
  double rate = 0;
  double since = 0;
  double alpha_s = 0;    // of the path beyond the transport's, and of all within a node
  bool is_nic = false;   // whose alpha depends on the size
  bool is_free = false;  // no link bounds it
};

enum class What : char { launch, leave, arrive, land };

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
  Simulation(std::span<const models::Schedule> schedules, const CommunicationCost& cost)
      : schedules_(schedules.begin(), schedules.end()),
        cost_(cost),
        ranks_(schedules.front().ranks()),
        routes_(cost, ranks_),
        gap_s_(cost.transport->message_gap.value()),
        busy_until_(at(ranks_)) {
    for (const models::Schedule& schedule : schedules_)
      PACELINE_ASSERT(schedule.ranks() == ranks_, "all schedules are over the same ranks");
    for (int link = 0; link < routes_.links(); ++link) {
      const double beta_s = routes_.beta_s(link);
      sharing_.add_link(beta_s > 0 ? 1 / beta_s : std::numeric_limits<double>::max());
    }
  }

  Completion completion(int schedule, Bytes bucket, std::span<const Seconds> ready) {
    reset();
    finish_.assign(at(ranks_), 0);
    const int instance = make_instance(0, schedule, bucket);
    for (int rank = 0; rank < ranks_; ++rank)
      add({ready.empty() ? 0 : ready[at(rank)].value(), 0, What::launch, instance, rank, 0});
    simulate([](int, Seconds, Launcher&) {});
    Completion completion;
    for (const double finish : finish_) completion.finish.emplace_back(finish);
    return completion;
  }

  void run(const std::function<void(Launcher&)>& begin, const Finished& finished) {
    reset();
    finish_.assign(at(ranks_), 0);
    begin(*this);
    simulate(finished);
  }

  void launch(int id, const Launch& collective) override {
    PACELINE_ASSERT(collective.schedule >= 0 && at(collective.schedule) < schedules_.size(),
                    "a collective is one of the engine's schedules");
    const int instance = make_instance(id, collective.schedule, collective.bytes);
    const double time = std::max(now_, collective.at.value());
    for (int rank = 0; rank < ranks_; ++rank) add({time, 0, What::launch, instance, rank, 0});
  }

  [[nodiscard]] std::int64_t messages() const { return messages_; }

 private:
  struct RankState {
    std::uint32_t landed = 0;
    std::uint32_t issued = 0;
    bool is_ready = false;
    bool lands = false;  // the receive `landed` is being landed
    bool is_done = false;
    std::vector<char> arrived;  // of each receive
  };
  struct Instance {
    int id = 0;
    const Compiled* compiled = nullptr;
    int ranks_left = 0;
    std::vector<RankState> ranks;
  };

  void reset() {
    PACELINE_ASSERT(events_.empty() && leaving_.empty(), "every collective came to its end");
    now_ = 0;
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
    const models::Schedule& s = schedules_[at(schedule)];
    // The window of posted receives, which messages that come early need not wait for, is no
    // matter here.
    const std::int64_t segment = std::max<std::int64_t>(
        1, models::segment_bytes(bytes, ranks_, cost_.transport->segmentation));
    for (int rank = 0; rank < ranks_; ++rank) {
      made.programs.push_back(models::compile(s, rank, bytes, models::WireType::fp32,
                                              {.segment_elements = segment, .window_elements = 1}));
    }
    // The messages from one rank to another are received in the order in which they are sent.
    std::map<std::pair<int, int>, std::vector<std::uint32_t>> receives;
    for (int rank = 0; rank < ranks_; ++rank) {
      const auto& list = made.programs[at(rank)].receives;
      for (std::uint32_t i = 0; i < list.size(); ++i) receives[{list[i].from, rank}].push_back(i);
    }
    std::map<std::pair<int, int>, std::size_t> next;
    made.meetings.resize(at(ranks_));
    for (int rank = 0; rank < ranks_; ++rank) {
      for (const Program::Send& send : made.programs[at(rank)].sends) {
        const std::pair<int, int> way{rank, send.to};
        made.meetings[at(rank)].push_back({connection(rank, send.to), receives[way][next[way]++]});
      }
    }
    return made;
  }

  int connection(int from, int to) {
    const auto [entry, is_new] =
        numbers_.try_emplace({from, to}, static_cast<int>(connections_.size()));
    if (!is_new) return entry->second;
    Connection made;
    std::vector<int> path;
    made.alpha_s = routes_.path(from, to, path);
    made.is_nic = routes_.between_nodes(from, to);
    if (made.is_nic) made.alpha_s -= cost_.nic.alpha.value();
    double bound = std::numeric_limits<double>::infinity();
    std::vector<int> shared;
    for (const int link : path) {
      const double beta_s = routes_.beta_s(link);
      if (beta_s <= 0) continue;
      bound = std::min(bound, 1 / beta_s);
      if (routes_.is_shared(link)) shared.push_back(link);
    }
    made.is_free = std::isinf(bound);
    const int flow = sharing_.add_flow(shared, made.is_free ? 0 : bound);
    PACELINE_ASSERT(flow == entry->second, "a flow for each connection");
    leaving_.add_slots(1);
    connections_.push_back(std::move(made));
    return entry->second;
  }

  int make_instance(int id, int schedule, Bytes bucket) {
    Instance instance;
    instance.id = id;
    instance.compiled = &compiled(schedule, std::llround(bucket.value()));
    instance.ranks_left = ranks_;
    instance.ranks.resize(at(ranks_));
    for (int rank = 0; rank < ranks_; ++rank) {
      instance.ranks[at(rank)].arrived.assign(instance.compiled->programs[at(rank)].receives.size(),
                                              0);
    }
    instances_.push_back(std::move(instance));
    return static_cast<int>(instances_.size()) - 1;
  }

  void simulate(const Finished& finished) {
    for (;;) {
      const double event =
          events_.empty() ? std::numeric_limits<double>::infinity() : events_.top().time;
      const double left =
          leaving_.empty() ? std::numeric_limits<double>::infinity() : leaving_.earliest();
      if (std::isinf(event) && std::isinf(left)) break;
      now_ = std::max(now_, std::min(event, left));
      constexpr double at_once = 1e-12;
      const double until = now_ * (1 + at_once);
      while (!leaving_.empty() && leaving_.earliest() <= until) message_left(leaving_.pop());
      while (!events_.empty() && events_.top().time <= until) {
        const Event next = events_.top();
        events_.pop();
        handle(next);
      }
      settle();
      for (std::size_t i = 0; i < done_.size(); ++i) {
        Instance& instance = instances_[at(done_[i])];
        instance.ranks.clear();
        finished(instance.id, Seconds{now_}, *this);
      }
      done_.clear();
    }
  }

  void handle(const Event& event) {
    RankState& rank = instances_[at(event.instance)].ranks[at(event.rank)];
    switch (event.what) {
      case What::launch:
        rank.is_ready = true;
        issue(event.instance, event.rank, program(event).sends_at_start);
        advance(event.instance, event.rank);
        break;
      case What::leave:
        enter_connection(event);
        break;
      case What::arrive:
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

  [[nodiscard]] const Program& program(const Event& event) const {
    return instances_[at(event.instance)].compiled->programs[at(event.rank)];
  }

  // Lands what has arrived, in order.
  void advance(int instance, int rank) {
    Instance& i = instances_[at(instance)];
    RankState& state = i.ranks[at(rank)];
    const Program& program = i.compiled->programs[at(rank)];
    if (!state.is_ready || state.lands || state.is_done) return;
    while (state.landed < program.receives.size()) {
      const Program::Receive& receive = program.receives[state.landed];
      if (state.arrived[state.landed] == 0 || !is_free(program, receive, state)) return;
      if (receive.reduce) {
        double& busy = busy_until_[at(rank)];
        busy = std::max(busy, now_) + cost_.gamma.value() * static_cast<double>(receive.span.size);
        if (busy > now_) {
          state.lands = true;
          add({busy, 0, What::land, instance, rank, 0});
          return;
        }
      }
      landed(instance, rank);
    }
    state.is_done = true;
    finish_[at(rank)] = std::max(now_, busy_until_[at(rank)]);
    if (finish_[at(rank)] > now_) {
      // Its last sends are still being issued.
      state.is_done = false;
      state.lands = true;
      add({finish_[at(rank)], 0, What::land, instance, rank, 1});
      return;
    }
    if (--i.ranks_left == 0) done_.push_back(instance);
  }

  // Sends that read what a receive changes are over: a transport has a copy of what it was given.
  static bool is_free(const Program& program, const Program::Receive& receive,
                      const RankState& state) {
    for (std::uint32_t i = receive.sends_before.first; i < receive.sends_before.last; ++i) {
      if (program.awaited[i] >= state.issued) return false;
    }
    return true;
  }

  void landed(int instance, int rank) {
    Instance& i = instances_[at(instance)];
    RankState& state = i.ranks[at(rank)];
    const Program& program = i.compiled->programs[at(rank)];
    if (state.landed == program.receives.size()) return;
    ++state.landed;
    issue(instance, rank, program.receives[state.landed - 1].sends_after);
  }

  void issue(int instance, int rank, std::uint32_t end) {
    RankState& state = instances_[at(instance)].ranks[at(rank)];
    for (; state.issued < end; ++state.issued) {
      double& busy = busy_until_[at(rank)];
      busy = std::max(busy, now_) + gap_s_;
      const Event leave{busy, 0, What::leave, instance, rank, state.issued};
      if (busy > now_) {
        add(leave);
      } else {
        enter_connection(leave);
      }
    }
  }

  void enter_connection(const Event& event) {
    const Instance& instance = instances_[at(event.instance)];
    const Compiled::Meeting& meeting = instance.compiled->meetings[at(event.rank)][event.index];
    const Program::Send& send = instance.compiled->programs[at(event.rank)].sends[event.index];
    Connection& connection = connections_[at(meeting.connection)];
    connection.waiting.push_back(
        {event.instance, send.to, meeting.receive, static_cast<double>(send.span.size)});
    ++messages_;
    if (connection.waiting.size() == 1) put_on_wire(meeting.connection, true);
  }

  // The first of those that wait. `starts`: the connection was idle.
  void put_on_wire(int number, bool starts) {
    Connection& connection = connections_[at(number)];
    connection.remaining = connection.waiting.front().bytes;
    connection.since = now_;
    if (connection.is_free || connection.remaining <= 0) {
      if (!starts) sharing_.stop(number);
      connection.rate = 0;
      connection.remaining = 0;
      leaving_.set(number, now_);
      return;
    }
    if (starts) {
      connection.rate = 0;
      sharing_.start(number);
    } else {
      leaving_.set(number, now_ + connection.remaining / connection.rate);
    }
  }

  void message_left(int number) {
    Connection& connection = connections_[at(number)];
    const Message message = connection.waiting.front();
    connection.waiting.pop_front();
    const double alpha_s =
        connection.alpha_s +
        (connection.is_nic ? cost_.nic_alpha(Bytes{message.bytes}).value() : 0.0);
    add({now_ + alpha_s, 0, What::arrive, message.instance, message.to, message.receive});
    const bool ran = connection.rate > 0;
    if (!connection.waiting.empty()) {
      put_on_wire(number, !ran);
    } else {
      if (ran) sharing_.stop(number);
      connection.rate = 0;
    }
  }

  void settle() {
    sharing_.settle([this](int flow) {
      Connection& connection = connections_[at(flow)];
      if (connection.waiting.empty()) return;
      connection.remaining =
          std::max(0.0, connection.remaining - (now_ - connection.since) * connection.rate);
      connection.since = now_;
      connection.rate = sharing_.rate(flow);
      leaving_.set(flow, now_ + connection.remaining / connection.rate);
    });
  }

  std::vector<models::Schedule> schedules_;
  CommunicationCost cost_;
  int ranks_;
  Routes routes_;
  double gap_s_;
  std::map<std::pair<int, std::int64_t>, Compiled> compiled_;
  std::map<std::pair<int, int>, int> numbers_;  // of connections
  std::vector<Connection> connections_;
  FairSharing sharing_;
  EventHeap leaving_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t order_ = 0;
  double now_ = 0;
  std::vector<double> busy_until_;  // of each rank
  std::deque<Instance> instances_;
  std::vector<double> finish_;  // of each rank, in the collective that it finished last
  std::vector<int> done_;
  std::int64_t messages_ = 0;
};

ExecutorEngine::ExecutorEngine(std::span<const models::Schedule> schedules,
                               const CommunicationCost& cost) {
  PACELINE_ASSERT(!schedules.empty(), "there is a schedule to follow");
  PACELINE_ASSERT(cost.transport.has_value(), "the executor runs on a transport");
  simulation_ = std::make_unique<Simulation>(schedules, cost);
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

std::int64_t ExecutorEngine::messages() const {
  return simulation_->messages();
}

bool suits_executor_engine(const models::Schedule& schedule) {
  // A rank sends about one message a step, in a few segments.
  constexpr std::int64_t most_transfers = 1'000'000;
  return static_cast<std::int64_t>(schedule.steps()) * schedule.ranks() <= most_transfers;
}

}  // namespace paceline::simulator

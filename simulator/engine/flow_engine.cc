// Tests: tests/simulator/flow_engine_test.cc, tests/agreement/shared_link_agreement_test.cc.
//
// IMPLEMENTATION. A collective in flight is an Instance of a FlowProgram. Each of its lanes, for
// the message that is on it, and each of its positions has a slot, which says what it waits for;
// slots are events in one heap.
//   message   waits for both its ends; then for alpha; then flows, and ends when its bytes are
//             through
//   position  waits until it is ready; then, in each step, for its messages; then for its
//             reductions
// Events at (nearly) the same time are one batch, after which rates are settled once: p messages
// that start together cost one round of filling, not p.
#include "simulator/engine/flow_engine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "simulator/engine/equivalence.h"
#include "simulator/engine/event_heap.h"
#include "simulator/engine/flow_program.h"
#include "simulator/engine/max_min.h"
#include "simulator/engine/routes.h"

namespace paceline::simulator {
namespace {

enum class Phase : char { waits, latency, flows };

// The message that is on a lane, or was.
struct Message {
  double remaining = 0;  // bytes, at `since`
  double rate = 0;       // bytes/s
  double since = 0;
  int number = 0;  // in the program
  Phase phase = Phase::waits;
  char ends_there = 0;  // of its two ends, how many have come to its step
};

struct Position {
  int done_parts = 0;  // of its program
  int repeat = 0;      // of the current part
  int sends = 0;       // that have not arrived yet
  int receives = 0;
  bool reduces = false;
  double finish = 0;
};

// What a steady run looks like after a step, except for the time: `exact` must be the same one step
// later, `close` nearly so.
struct Snapshot {
  std::vector<int> exact;
  std::vector<double> close;
  double time = 0;
  int repeat = -1;  // of the first part of the run; -1: there is none
  int run = -1;

  void clear() {
    exact.clear();
    close.clear();
    repeat = -1;
  }
};

}  // namespace

class FlowEngine::Simulation final : public Launcher {
 public:
  Simulation(std::shared_ptr<const FlowPrograms> programs, const Routes& routes, double gamma_s);

  Completion completion(int schedule, Bytes bucket, std::span<const Seconds> ready);
  void run(const std::function<void(Launcher&)>& begin, const Finished& finished);
  void launch(int id, const Launch& collective) override;
  [[nodiscard]] int positions() const { return made_->positions; }
  [[nodiscard]] std::int64_t flows() const { return flows_; }

 private:
  struct Instance {
    int schedule = 0;
    bool is_alone = false;  // made for a time when no other is in flight
    int first_slot = 0;     // lanes, then positions; flows of sharing_ have the same numbers
    int id = 0;
    double bytes = 0;
    int positions_left = 0;
    std::vector<Message> lanes;
    std::vector<Position> positions;
    // The states of the collective at the ends of two alike steps. Equal ones cut the run short.
    Snapshot before;
    Snapshot now;
  };
  struct Pending {
    double at;
    std::int64_t order;
    int id;
    int schedule;
    double bytes;
    bool operator>(const Pending& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  [[nodiscard]] const FlowProgram& program(const Instance& i) const {
    return made_->programs[to_size(i.schedule)];
  }
  [[nodiscard]] double bound(int kind) const { return 1 / ways_[to_size(kind)].per_byte_s; }
  Instance& idle_instance(int schedule, bool is_alone);
  void start(Instance& instance, int id, double bytes);
  void simulate(const Finished& finished);
  void take_launches(double until);
  void handle(int slot);
  void begin_message(Instance& instance, int message);
  void arrive(Instance& instance, int message);
  void enter(Instance& instance, int position);
  void step_on(Instance& instance, int position);
  void finish_if_through(Instance& instance, int position);
  void settle();
  bool photograph(const Instance& instance, int run, Snapshot& snapshot) const;
  void cut_short();

  std::shared_ptr<const FlowPrograms> made_;
  std::vector<PathTime> ways_;  // of each kind of lanes
  double gamma_s_;              // for each byte that is reduced
  FairSharing sharing_;
  EventHeap events_;
  double now_ = 0;
  std::vector<std::unique_ptr<Instance>> instances_;
  std::vector<Instance*> owners_;  // of slots
  std::vector<std::vector<Instance*>>
      idle_;  // of schedule s, in flight with others or alone: 2s, 2s + 1
  int in_flight_ = 0;
  std::priority_queue<Pending, std::vector<Pending>, std::greater<>> pending_;
  std::int64_t launches_ = 0;
  std::vector<Instance*> done_;
  // The instance and run whose first position has just made a step; for cutting runs short.
  Instance* stepped_ = nullptr;
  int stepped_run_ = 0;
  std::int64_t flows_ = 0;
};

FlowEngine::Simulation::Simulation(std::shared_ptr<const FlowPrograms> programs,
                                   const Routes& routes, double gamma_s)
    : made_(std::move(programs)), ways_(made_->kinds.times(routes)), gamma_s_(gamma_s) {
  for (const int link : made_->links) sharing_.add_link(1 / routes.beta_s(link));
  idle_.resize(2 * made_->programs.size());
}

FlowEngine::Simulation::Instance& FlowEngine::Simulation::idle_instance(int schedule,
                                                                        bool is_alone) {
  auto& idle = idle_[2 * to_size(schedule) + (is_alone ? 1 : 0)];
  if (!idle.empty()) {
    Instance& instance = *idle.back();
    idle.pop_back();
    return instance;
  }
  const FlowProgram& program = made_->programs[to_size(schedule)];
  instances_.push_back(std::make_unique<Instance>());
  Instance& instance = *instances_.back();
  instance.schedule = schedule;
  instance.is_alone = is_alone;
  instance.first_slot = static_cast<int>(owners_.size());
  instance.lanes.resize(program.lanes.size());
  instance.positions.resize(to_size(positions()));
  for (const FlowProgram::Lane& lane : program.lanes) {
    const std::size_t end = is_alone ? lane.end_own : lane.end_link;
    sharing_.add_flow(std::span(program.links).subspan(lane.first_link, end - lane.first_link),
                      std::span(program.weights).subspan(lane.first_link, end - lane.first_link),
                      bound(lane.kind));
  }
  // Positions are no flows, but have slots.
  for (int position = 0; position < positions(); ++position) sharing_.add_flow({}, 0);
  const std::size_t slots = program.lanes.size() + to_size(positions());
  owners_.resize(owners_.size() + slots, &instance);
  events_.add_slots(static_cast<int>(slots));
  return instance;
}

void FlowEngine::Simulation::start(Instance& instance, int id, double bytes) {
  instance.id = id;
  instance.bytes = bytes;
  instance.positions_left = positions();
  std::fill(instance.positions.begin(), instance.positions.end(), Position{});
  instance.before.clear();
  ++in_flight_;
}

Completion FlowEngine::Simulation::completion(int schedule, Bytes bucket,
                                              std::span<const Seconds> ready) {
  now_ = 0;
  Instance& instance = idle_instance(schedule, true);
  start(instance, 0, bucket.value());
  const int first_position = instance.first_slot + static_cast<int>(instance.lanes.size());
  for (int position = 0; position < positions(); ++position)
    events_.set(first_position + position, ready.empty() ? 0 : ready[to_size(position)].value());
  simulate([](int, Seconds, Launcher&) {});
  std::vector<double> finish_s;
  finish_s.reserve(made_->class_of.size());
  for (const int position : made_->class_of)
    finish_s.push_back(instance.positions[to_size(position)].finish);
  return completion_of(made_->ranks, finish_s);
}

void FlowEngine::Simulation::run(const std::function<void(Launcher&)>& begin,
                                 const Finished& finished) {
  now_ = 0;
  begin(*this);
  simulate(finished);
}

void FlowEngine::Simulation::launch(int id, const Launch& collective) {
  PACELINE_ASSERT(collective.schedule >= 0 && to_size(collective.schedule) < made_->programs.size(),
                  "a collective is one of the engine's schedules");
  pending_.push({std::max(now_, collective.at.value()), launches_++, id, collective.schedule,
                 collective.bytes.value()});
}

// Batches: events that are closer to each other than any figure is exact.
void FlowEngine::Simulation::simulate(const Finished& finished) {
  constexpr double at_once = 1e-12;
  for (;;) {
    double next = events_.empty() ? std::numeric_limits<double>::infinity() : events_.earliest();
    if (!pending_.empty()) next = std::min(next, pending_.top().at);
    if (std::isinf(next)) break;
    now_ = std::max(now_, next);
    const double until = now_ + at_once * now_;
    take_launches(until);
    stepped_ = nullptr;
    while (!events_.empty() && events_.earliest() <= until) handle(events_.pop());
    settle();
    if (stepped_ != nullptr) cut_short();
    for (std::size_t i = 0; i < done_.size(); ++i) {
      Instance& instance = *done_[i];
      --in_flight_;
      idle_[2 * to_size(instance.schedule) + (instance.is_alone ? 1 : 0)].push_back(&instance);
      finished(instance.id, Seconds{now_}, *this);
    }
    done_.clear();
  }
  PACELINE_ASSERT(in_flight_ == 0, "every collective comes to its end");
}

void FlowEngine::Simulation::take_launches(double until) {
  while (!pending_.empty() && pending_.top().at <= until) {
    const Pending launch = pending_.top();
    pending_.pop();
    Instance& instance = idle_instance(launch.schedule, false);
    start(instance, launch.id, launch.bytes);
    const int first_position = instance.first_slot + static_cast<int>(instance.lanes.size());
    for (int position = 0; position < positions(); ++position)
      events_.set(first_position + position, now_);
  }
}

void FlowEngine::Simulation::handle(int slot) {
  Instance& instance = *owners_[to_size(slot)];
  const int local = slot - instance.first_slot;
  const int lanes = static_cast<int>(instance.lanes.size());
  if (local >= lanes) {
    const int position = local - lanes;
    Position& state = instance.positions[to_size(position)];
    if (state.reduces) {
      state.reduces = false;
      finish_if_through(instance, position);
    } else {
      enter(instance, position);
    }
    return;
  }
  Message& message = instance.lanes[to_size(local)];
  if (message.phase == Phase::latency && message.remaining > 0) {
    message.phase = Phase::flows;
    message.since = now_;
    message.rate = 0;
    sharing_.start(slot);
    return;
  }
  if (message.phase == Phase::flows) sharing_.stop(slot);
  message.phase = Phase::waits;
  arrive(instance, message.number);
}

void FlowEngine::Simulation::begin_message(Instance& instance, int message) {
  const FlowProgram::Message& m = program(instance).messages[to_size(message)];
  const FlowProgram::Lane& lane = program(instance).lanes[to_size(m.lane)];
  Message& state = instance.lanes[to_size(m.lane)];
  state.number = message;
  state.ends_there = 0;
  state.phase = Phase::latency;
  state.remaining = m.fraction * instance.bytes;
  // What no link bounds takes no time.
  const PathTime& way = ways_[to_size(lane.kind)];
  if (way.per_byte_s == 0) state.remaining = 0;
  ++flows_;
  events_.set(instance.first_slot + m.lane, now_ + way.alpha_s);
}

void FlowEngine::Simulation::arrive(Instance& instance, int message) {
  const FlowProgram::Message& m = program(instance).messages[to_size(message)];
  Position& sender = instance.positions[to_size(m.from)];
  --sender.sends;
  Position& receiver = instance.positions[to_size(m.to)];
  if (--receiver.receives == 0) {
    const int part = program(instance).program_of(m.to)[to_size(receiver.done_parts)];
    const double reduction =
        program(instance).parts[to_size(part)].reduced * gamma_s_ * instance.bytes;
    if (reduction > 0) {
      receiver.reduces = true;
      events_.set(instance.first_slot + static_cast<int>(instance.lanes.size()) + m.to,
                  now_ + reduction);
    }
  }
  finish_if_through(instance, m.from);
  if (m.to != m.from) finish_if_through(instance, m.to);
}

void FlowEngine::Simulation::finish_if_through(Instance& instance, int position) {
  const Position& state = instance.positions[to_size(position)];
  if (state.sends == 0 && state.receives == 0 && !state.reduces) step_on(instance, position);
}

// Takes a position to the next step of its run, or to its next run.
void FlowEngine::Simulation::step_on(Instance& instance, int position) {
  Position& state = instance.positions[to_size(position)];
  const FlowProgram& p = program(instance);
  const int part = p.program_of(position)[to_size(state.done_parts)];
  const int run = p.parts[to_size(part)].run;
  if (++state.repeat == p.runs[to_size(run)].repeats) {
    state.repeat = 0;
    ++state.done_parts;
  } else if (part == p.runs[to_size(run)].first_part) {
    stepped_ = &instance;
    stepped_run_ = run;
  }
  enter(instance, position);
}

void FlowEngine::Simulation::enter(Instance& instance, int position) {
  Position& state = instance.positions[to_size(position)];
  const FlowProgram& p = program(instance);
  const auto parts = p.program_of(position);
  if (to_size(state.done_parts) == parts.size()) {
    state.finish = now_;
    if (--instance.positions_left == 0) done_.push_back(&instance);
    return;
  }
  const FlowProgram::Part& part = p.parts[to_size(parts[to_size(state.done_parts)])];
  state.sends = part.sends;
  state.receives = part.receives;
  for (std::size_t i = part.first_message; i < part.end_message; ++i) {
    const int message = p.mine[i];
    Message& on_lane = instance.lanes[to_size(p.messages[to_size(message)].lane)];
    if (++on_lane.ends_there == 2) begin_message(instance, message);
  }
}

void FlowEngine::Simulation::settle() {
  sharing_.settle([this](int slot) {
    Instance& instance = *owners_[to_size(slot)];
    Message& message = instance.lanes[to_size(slot - instance.first_slot)];
    message.remaining = std::max(0.0, message.remaining - message.rate * (now_ - message.since));
    message.since = now_;
    message.rate = sharing_.rate(slot);
    events_.set(slot, now_ + message.remaining / message.rate);
  });
}

// Fills in what the run looks like now; false if it is not by itself.
bool FlowEngine::Simulation::photograph(const Instance& instance, int run,
                                        Snapshot& snapshot) const {
  const FlowProgram& p = program(instance);
  const FlowProgram::Run& r = p.runs[to_size(run)];
  const int lanes = static_cast<int>(instance.lanes.size());
  snapshot.clear();
  snapshot.time = now_;
  snapshot.run = run;
  snapshot.repeat = instance.positions[to_size(p.parts[to_size(r.first_part)].position)].repeat;
  std::size_t events = 0;
  const auto note_event = [&](int slot) {
    const bool is_set = events_.contains(slot);
    snapshot.exact.push_back(is_set ? 1 : 0);
    if (!is_set) return;
    ++events;
    snapshot.close.push_back(events_.time(slot) - now_);
  };
  for (int part = r.first_part; part < r.end_part; ++part) {
    const int position = p.parts[to_size(part)].position;
    const Position& state = instance.positions[to_size(position)];
    const auto program = p.program_of(position);
    if (to_size(state.done_parts) == program.size() || program[to_size(state.done_parts)] != part)
      return false;
    snapshot.exact.insert(snapshot.exact.end(), {state.repeat - snapshot.repeat, state.sends,
                                                 state.receives, state.reduces ? 1 : 0});
    note_event(instance.first_slot + lanes + position);
  }
  for (int message = r.first_message; message < r.end_message; ++message) {
    const int lane = p.messages[to_size(message)].lane;
    const Message& state = instance.lanes[to_size(lane)];
    snapshot.exact.push_back(2 * static_cast<int>(state.phase) + state.ends_there);
    // The rate and the time of its end say together what remains of a message.
    snapshot.exact.push_back(state.phase == Phase::flows ? 1 : 0);
    if (state.phase == Phase::flows) snapshot.close.push_back(state.rate);
    note_event(instance.first_slot + lane);
  }
  return events == events_.size();
}

// If the run looks as it did a step ago, it will go on so: moves its state on by as many steps as
// are left, less those that some position is ahead, and that end before another collective
// starts. Looks at steps 2^n and 2^n + 1, so that what it costs is little where it is in vain.
void FlowEngine::Simulation::cut_short() {
  Instance& instance = *stepped_;
  const FlowProgram& p = program(instance);
  const FlowProgram::Run& run = p.runs[to_size(stepped_run_)];
  if (in_flight_ != 1 || run.repeats < 8) return;
  const int repeat = instance.positions[to_size(p.parts[to_size(run.first_part)].position)].repeat;
  const bool follows = instance.before.run == stepped_run_ && instance.before.repeat == repeat - 1;
  const bool is_power = (repeat & (repeat - 1)) == 0;
  if (!follows && !is_power) return;
  if (!photograph(instance, stepped_run_, instance.now)) {
    instance.before.clear();
    return;
  }
  const double period = now_ - instance.before.time;
  const auto is_close = [period](double a, double b) {
    constexpr double as_good = 1e-10;
    return std::abs(a - b) <= as_good * std::max(period, std::max(std::abs(a), std::abs(b)));
  };
  const bool is_steady =
      follows && period > 0 && instance.now.exact == instance.before.exact &&
      std::equal(instance.now.close.begin(), instance.now.close.end(),
                 instance.before.close.begin(), instance.before.close.end(), is_close);
  std::swap(instance.before, instance.now);
  if (!is_steady) return;
  int ahead = 0;
  for (int part = run.first_part; part < run.end_part; ++part)
    ahead = std::max(ahead, instance.positions[to_size(p.parts[to_size(part)].position)].repeat);
  double steps = run.repeats - 1 - ahead;
  if (!pending_.empty())
    steps = std::min(steps, std::floor((pending_.top().at - now_) / period) - 1);
  if (steps < 1) return;
  const double by = steps * period;
  now_ += by;
  events_.delay_all(by);
  for (int part = run.first_part; part < run.end_part; ++part)
    instance.positions[to_size(p.parts[to_size(part)].position)].repeat += static_cast<int>(steps);
  for (int message = run.first_message; message < run.end_message; ++message)
    instance.lanes[to_size(p.messages[to_size(message)].lane)].since += by;
  instance.before.clear();
}

FlowEngine::FlowEngine(std::span<const models::Schedule> schedules, const CommunicationCost& cost,
                       Collapse collapse) {
  PACELINE_ASSERT(!schedules.empty(), "there is a schedule to follow");
  const Routes routes(cost, schedules.front().ranks());
  simulation_ = std::make_unique<Simulation>(
      std::make_shared<FlowPrograms>(make_flow_programs(schedules, routes, collapse)), routes,
      cost.gamma.value());
}

FlowEngine::FlowEngine(std::shared_ptr<const FlowPrograms> programs, const Routes& routes,
                       double gamma_s)
    : simulation_(std::make_unique<Simulation>(std::move(programs), routes, gamma_s)) {}

FlowEngine::~FlowEngine() = default;

Completion FlowEngine::completion(int schedule, Bytes bucket) {
  return simulation_->completion(schedule, bucket, {});
}

Completion FlowEngine::completion(int schedule, Bytes bucket, std::span<const Seconds> ready) {
  PACELINE_ASSERT(ready.size() == to_size(simulation_->positions()),
                  "ready times are for ranks that are not collapsed");
  return simulation_->completion(schedule, bucket, ready);
}

void FlowEngine::run(const std::function<void(Launcher&)>& begin, const Finished& finished) {
  simulation_->run(begin, finished);
}

int FlowEngine::positions() const {
  return simulation_->positions();
}

std::int64_t FlowEngine::flows() const {
  return simulation_->flows();
}

}  // namespace paceline::simulator

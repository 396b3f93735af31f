// Tests: tests/agreement/simgrid_agreement_test.cc. The only file that includes SimGrid.
//
// IMPLEMENTATION. No actors: a message is a delay of alpha (a timer of SimGrid's kernel) and then a
// host-to-host Comm, made when both of its ends are ready, and completion callbacks count what
// each rank still waits for. Comms that were all made beforehand would cost quadratic time in 3.32.
//
// All latencies of the platform are 0 because CM02 weighs a flow by the inverse of its route's
// latency: with 0 every weight is exactly 1, which is plain max-min, and the delay is exactly
// alpha.
#include "simulator/engine/simgrid_engine.h"

#include <fmt/core.h>
#include <simgrid/engine.h>
#include <simgrid/version.h>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <list>
#include <map>
#include <stdexcept>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/collective/enumerate.h"
#include "simulator/engine/child_process.h"
#include "simulator/engine/prepare.h"
#include "simulator/engine/routes.h"

namespace paceline::simulator {
namespace {

namespace s4u = simgrid::s4u;
using simgrid::kernel::timer::Timer;

constexpr const char* work = "simulate with SimGrid";
constexpr double units_per_byte = 1 << 20;

// The messages of a schedule, and for each (step, rank) those that the rank sends or receives.
struct MessageTable {
  struct Message {
    int step;
    int from;
    int to;
    double fraction;
  };
  struct Turn {  // of a rank in a step
    int sends = 0;
    int receives = 0;
    double reduced = 0;  // fraction of the bucket
    std::size_t end_message = 0;
  };
  int ranks;
  int steps;
  std::vector<Message> messages;
  std::vector<Turn> turns;           // steps * ranks
  std::vector<std::size_t> by_turn;  // indices of messages, each twice

  explicit MessageTable(const models::Schedule& schedule)
      : ranks(schedule.ranks()), steps(schedule.steps()) {}

  [[nodiscard]] std::size_t turn(int step, int rank) const {
    return to_size(step) * to_size(ranks) + to_size(rank);
  }
  [[nodiscard]] std::span<const std::size_t> messages_of(std::size_t turn) const {
    const std::size_t first = turn == 0 ? 0 : turns[turn - 1].end_message;
    return std::span(by_turn).subspan(first, turns[turn].end_message - first);
  }
};

MessageTable read(const models::Schedule& schedule, std::size_t most_messages) {
  MessageTable table(schedule);
  table.turns.resize(table.turn(table.steps, 0));
  for (int step = 0; step < table.steps; ++step) {
    models::for_each_transfer(
        schedule, step, models::Span<double>{0.0, 1.0}, [&](const models::Transfer<double>& t) {
          if (table.messages.size() == most_messages) {
            throw TooManyMessages(
                fmt::format("{} ranks send too many messages for SimGrid", table.ranks),
                "choose fewer ranks, or another engine");
          }
          table.messages.push_back({step, t.from, t.to, t.span.size});
          ++table.turns[table.turn(step, t.from)].sends;
          MessageTable::Turn& receiver = table.turns[table.turn(step, t.to)];
          ++receiver.receives;
          if (t.reduce) receiver.reduced += t.span.size;
        });
  }
  std::vector<std::size_t> next(table.turns.size());
  std::size_t end = 0;
  for (std::size_t turn = 0; turn < table.turns.size(); ++turn) {
    next[turn] = end;
    end += to_size(table.turns[turn].sends + table.turns[turn].receives);
    table.turns[turn].end_message = end;
  }
  table.by_turn.resize(end);
  for (std::size_t i = 0; i < table.messages.size(); ++i) {
    const MessageTable::Message& m = table.messages[i];
    table.by_turn[next[table.turn(m.step, m.from)]++] = i;
    table.by_turn[next[table.turn(m.step, m.to)]++] = i;
  }
  return table;
}

// The records that parent and child send each other.
struct LaunchLine {
  int id = 0;
  int schedule = -1;  // -1: that is all
  double bytes = 0;
  double at_s = 0;
};
struct FinishedLine {
  int id = 0;
  int is_last = 0;  // all is done, and `at_s` is what Engine::run() took of the CPU
  double at_s = 0;
};

}  // namespace

struct SimgridEngine::Model {
  std::vector<MessageTable> tables;
  Routes routes;
  double gamma_s;
};

namespace {

double cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Runs in the child, once.
class Interpreter {
 public:
  // A collective is done when its last rank is; finish_s is over ranks.
  using Done = std::function<void(int id, const std::vector<double>& finish_s)>;

  Interpreter(const std::vector<MessageTable>& tables, const Routes& routes, double gamma_s,
              Done done)
      : tables_(tables), routes_(routes), gamma_s_(gamma_s), done_(std::move(done)) {
    configure();
    build_platform();
    s4u::Activity::on_completion_cb([this](const s4u::Activity& activity) {
      if (auto* flow = activity.get_data<Flow>()) end_flow(*flow);
    });
  }

  // ready_s is over ranks, not before now.
  void launch(int id, int schedule, double bytes, const std::vector<double>& ready_s) {
    const MessageTable& table = tables_[to_size(schedule)];
    const auto ranks = to_size(table.ranks);
    instances_.push_back({.id = id, .table = table, .bytes = bytes});
    Instance& instance = instances_.back();
    instance.self = std::prev(instances_.end());
    instance.missing_ends.assign(table.messages.size(), 2);
    instance.missing.reserve(table.turns.size());
    for (const MessageTable::Turn& turn : table.turns)
      instance.missing.push_back({turn.receives, turn.sends + turn.receives + (turn.reduced > 0)});
    instance.finish_s.resize(ranks);
    instance.ranks_left = table.ranks;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      Timer::set(ready_s[rank],
                 [this, &instance, rank] { enter(instance, 0, static_cast<int>(rank)); });
    }
  }

  void run() {
    engine_.run();
    if (!instances_.empty()) {
      const Instance& instance = instances_.front();
      throw std::logic_error(fmt::format("it stopped at {} s with {} of {} messages arrived",
                                         s4u::Engine::get_clock(), instance.arrived,
                                         instance.table.messages.size()));
    }
  }

 private:
  struct Missing {
    int receives;
    int parts;  // sends, receives, and a reduction if there is one
  };
  struct Instance {  // a collective that is under way
    int id;
    const MessageTable& table;
    double bytes;
    std::list<Instance>::iterator self = {};
    std::vector<std::uint8_t> missing_ends = {};  // of each message, that are not ready for it
    std::vector<Missing> missing = {};            // of each turn
    std::vector<double> finish_s = {};
    int ranks_left = 0;
    std::size_t arrived = 0;
  };
  struct Flow {
    Instance* instance = nullptr;
    std::size_t message = 0;
    s4u::CommPtr comm;
  };
  // The way between a pair of ranks. If no link of it takes time, bytes arrive after alpha.
  struct Way {
    double alpha_s = 0;
    bool has_links = false;
  };

  void configure() {
    s4u::Engine::set_config("network/model:CM02");
    s4u::Engine::set_config("network/crosstraffic:0");
    s4u::Engine::set_config("network/TCP-gamma:1e30");
    s4u::Engine::set_config("maxmin/precision:1e-9");
    s4u::Engine::set_config("surf/precision:1e-12");
  }

  void build_platform() {
    s4u::NetZone* zone = s4u::create_full_zone("cluster");
    for (int rank = 0; rank < routes_.ranks(); ++rank)
      hosts_.push_back(zone->create_host(fmt::format("rank{}", rank), 1e9)->seal());
    std::map<int, const s4u::Link*> links;  // that are in use
    const auto link = [&](int id) {
      const auto [entry, is_new] = links.try_emplace(id);
      if (is_new) {
        entry->second =
            zone->create_link(fmt::format("link{}", id), units_per_byte / routes_.beta_s(id))
                ->set_sharing_policy(routes_.is_shared(id) ? s4u::Link::SharingPolicy::SHARED
                                                           : s4u::Link::SharingPolicy::FATPIPE)
                ->seal();
      }
      return s4u::LinkInRoute(entry->second);
    };
    std::vector<int> path;
    for (const MessageTable& table : tables_) {
      for (const MessageTable::Message& m : table.messages) {
        const auto [entry, is_new] = ways_.try_emplace(pair(m));
        if (!is_new) continue;
        entry->second.alpha_s = routes_.path(m.from, m.to, path);
        std::vector<s4u::LinkInRoute> route;
        for (const int id : path) {
          if (routes_.beta_s(id) > 0) route.push_back(link(id));
        }
        entry->second.has_links = !route.empty();
        if (route.empty()) continue;
        zone->add_route(host(m.from)->get_netpoint(), host(m.to)->get_netpoint(), nullptr, nullptr,
                        route, false);
      }
    }
    zone->seal();
  }

  [[nodiscard]] s4u::Host* host(int rank) const { return hosts_[to_size(rank)]; }
  static std::pair<int, int> pair(const MessageTable::Message& m) { return {m.from, m.to}; }

  static void after(double delay_s, std::function<void()> action) {
    Timer::set(s4u::Engine::get_clock() + delay_s, std::move(action));
  }

  // A rank is ready for a step: start the messages whose other end is, too.
  void enter(Instance& instance, int step, int rank) {
    for (; step < instance.table.steps; ++step) {
      const std::size_t turn = instance.table.turn(step, rank);
      for (const std::size_t message : instance.table.messages_of(turn)) {
        if (--instance.missing_ends[message] == 0) start(instance, message);
      }
      if (instance.missing[turn].parts > 0) return;
    }
    instance.finish_s[to_size(rank)] = s4u::Engine::get_clock();
    if (--instance.ranks_left > 0) return;
    const int id = instance.id;
    const std::vector<double> finish_s = std::move(instance.finish_s);
    if (instance.arrived != instance.table.messages.size())
      throw std::logic_error("ranks are done before all messages have arrived");
    instances_.erase(instance.self);
    done_(id, finish_s);
  }

  // Starts a message. It never arrives within this call, because callers are in the middle of a turn.
  void start(Instance& instance, std::size_t message) {
    const MessageTable::Message& m = instance.table.messages[message];
    const Way& way = ways_.at(pair(m));
    const bool flows = way.has_links && m.fraction * instance.bytes > 0;
    if (!flows) {
      after(way.alpha_s, [this, &instance, message] { arrive(instance, message); });
    } else if (way.alpha_s > 0) {
      after(way.alpha_s, [this, &instance, message] { start_flow(instance, message); });
    } else {
      start_flow(instance, message);
    }
  }

  void start_flow(Instance& instance, std::size_t message) {
    const MessageTable::Message& m = instance.table.messages[message];
    if (idle_.empty()) idle_.push_back(&flows_.emplace_back());
    Flow* flow = idle_.back();
    idle_.pop_back();
    const double units = std::round(m.fraction * instance.bytes * units_per_byte);
    flow->instance = &instance;
    flow->message = message;
    flow->comm = s4u::Comm::sendto_init();
    flow->comm->set_data(flow);
    flow->comm->set_payload_size(static_cast<std::uint64_t>(std::max(1.0, units)));
    flow->comm->set_source(host(m.from));
    flow->comm->set_destination(host(m.to));  // starts it
  }

  // A Comm must outlive its completion callback: it is let go in the next one.
  void end_flow(Flow& flow) {
    if (last_ended_ != nullptr) {
      last_ended_->comm.reset();
      idle_.push_back(last_ended_);
    }
    last_ended_ = &flow;
    arrive(*flow.instance, flow.message);
  }

  void arrive(Instance& instance, std::size_t message) {
    const MessageTable& table = instance.table;
    const MessageTable::Message& m = table.messages[message];
    ++instance.arrived;
    const std::size_t receiver = table.turn(m.step, m.to);
    if (--instance.missing[receiver].receives == 0 && table.turns[receiver].reduced > 0) {
      after(gamma_s_ * table.turns[receiver].reduced * instance.bytes,
            [this, &instance, step = m.step, rank = m.to] { end_part(instance, step, rank); });
    }
    end_part(instance, m.step, m.from);
    end_part(instance, m.step, m.to);
  }

  void end_part(Instance& instance, int step, int rank) {
    if (--instance.missing[instance.table.turn(step, rank)].parts == 0)
      enter(instance, step + 1, rank);
  }

  const std::vector<MessageTable>& tables_;
  const Routes& routes_;
  double gamma_s_;
  Done done_;
  int argument_count_ = 2;
  std::string name_ = "paceline";
  std::string quiet_ = "--log=root.thres:critical";
  std::array<char*, 3> arguments_ = {name_.data(), quiet_.data(), nullptr};
  s4u::Engine engine_{&argument_count_, arguments_.data()};
  std::vector<s4u::Host*> hosts_;
  std::map<std::pair<int, int>, Way> ways_;
  std::list<Instance> instances_;
  std::list<Flow> flows_;
  std::vector<Flow*> idle_;
  Flow* last_ended_ = nullptr;
};

void check_bytes(Bytes bytes, Bytes most) {
  PACELINE_ASSERT(bytes.value() >= 0, "a bucket has a size");
  if (bytes > most) {
    throw InputError(fmt::format("a bucket of {} bytes is too large for SimGrid", bytes.value()),
                     fmt::format("choose at most {} bytes", most.value()));
  }
}

}  // namespace

bool SimgridEngine::is_built_in() {
  return true;
}

const char* SimgridEngine::version() {
  static const std::string text = [] {
    int major = 0;
    int minor = 0;
    int patch = 0;
    sg_version_get(&major, &minor, &patch);
    return fmt::format("{}.{}.{}", major, minor, patch);
  }();
  return text.c_str();
}

SimgridEngine::SimgridEngine(std::span<const models::Schedule> schedules,
                             const CommunicationCost& cost) {
  PACELINE_ASSERT(!schedules.empty(), "an engine is made for a schedule");
  auto model = std::make_unique<Model>(
      Model{{}, Routes(cost, schedules.front().ranks()), cost.gamma.value()});
  std::size_t left = most_messages;
  for (const models::Schedule& schedule : schedules) {
    PACELINE_ASSERT(schedule.ranks() == schedules.front().ranks(),
                    "schedules are over the same ranks");
    model->tables.push_back(read(schedule, left));
    left -= model->tables.back().messages.size();
  }
  model_ = std::move(model);
}

SimgridEngine::~SimgridEngine() = default;

Completion SimgridEngine::completion(int schedule, Bytes bucket) {
  const std::vector<Seconds> ready(to_size(model_->routes.ranks()));
  return completion(schedule, bucket, ready);
}

Completion SimgridEngine::completion(int schedule, Bytes bucket, std::span<const Seconds> ready) {
  check_bytes(bucket, most_bytes);
  PACELINE_ASSERT(schedule >= 0 && to_size(schedule) < model_->tables.size(),
                  "a schedule that the engine was made for");
  PACELINE_ASSERT(ready.size() == to_size(model_->routes.ranks()), "one ready time for each rank");
  std::vector<double> ready_s;
  for (const Seconds time : ready) {
    PACELINE_ASSERT(time >= Seconds{0}, "ranks are ready at 0 or later");
    ready_s.push_back(time.value());
  }
  ChildProcess child(work, [&](ProcessPipe& parent) {
    std::vector<double> finish_s;
    Interpreter interpreter(model_->tables, model_->routes, model_->gamma_s,
                            [&](int, const std::vector<double>& done_s) { finish_s = done_s; });
    interpreter.launch(0, schedule, bucket.value(), ready_s);
    const double start_s = cpu_s();
    interpreter.run();
    const double run_s = cpu_s() - start_s;
    if (!parent.write(finish_s.data(), finish_s.size() * sizeof(double)) ||
        !parent.write(&run_s, sizeof run_s))
      throw std::runtime_error("nobody waits for the result");
  });
  Completion completion;
  for (std::size_t rank = 0; rank < ready.size(); ++rank)
    completion.finish.emplace_back(child.receive<double>());
  run_cpu_s_ = child.receive<double>();
  child.join();
  return completion;
}

void SimgridEngine::run(const std::function<void(Launcher&)>& begin, const Finished& finished) {
  struct Collected : Launcher {
    const Model* model;
    Seconds now;
    std::vector<LaunchLine> lines = {};

    explicit Collected(const Model* m) : model(m) {}
    void launch(int id, const Launch& collective) override {
      check_bytes(collective.bytes, most_bytes);
      PACELINE_ASSERT(
          collective.schedule >= 0 && to_size(collective.schedule) < model->tables.size(),
          "a schedule that the engine was made for");
      PACELINE_ASSERT(collective.at >= now, "a collective is not launched in the past");
      lines.push_back({id, collective.schedule, collective.bytes.value(), collective.at.value()});
    }
  };
  Collected launcher(model_.get());
  begin(launcher);
  ChildProcess child(work, [&](ProcessPipe& parent) {
    Interpreter* running = nullptr;
    const auto launch = [&](const LaunchLine& line) {
      running->launch(line.id, line.schedule, line.bytes,
                      std::vector<double>(to_size(model_->routes.ranks()), line.at_s));
    };
    const auto say = [&](const FinishedLine& line) {
      if (!parent.write(&line, sizeof line)) throw std::runtime_error("nobody listens");
    };
    Interpreter interpreter(
        model_->tables, model_->routes, model_->gamma_s,
        [&](int id, const std::vector<double>& finish_s) {
          say({.id = id, .at_s = *std::max_element(finish_s.begin(), finish_s.end())});
          for (LaunchLine line;;) {
            if (!parent.read(&line, sizeof line)) throw std::runtime_error("nobody answers");
            if (line.schedule < 0) break;
            launch(line);
          }
        });
    running = &interpreter;
    for (const LaunchLine& line : launcher.lines) launch(line);
    const double start_s = cpu_s();
    interpreter.run();
    say({.is_last = 1, .at_s = cpu_s() - start_s});
  });
  for (;;) {
    const auto line = child.receive<FinishedLine>();
    if (line.is_last != 0) {
      run_cpu_s_ = line.at_s;
      break;
    }
    launcher.now = Seconds{line.at_s};
    launcher.lines.clear();
    finished(line.id, launcher.now, launcher);
    for (const LaunchLine& launched : launcher.lines) child.send(launched);
    child.send(LaunchLine{});
  }
  child.join();
}

}  // namespace paceline::simulator

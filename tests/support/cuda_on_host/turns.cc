// The lock, and turns between ranks that are threads.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/support/cuda_on_host/state.h"

namespace cuda_on_host {
namespace {

using namespace std::chrono_literals;

// Where no operation can run and some thread is busy outside of CUDA: this many seconds nothing may happen.
double hangs_after_s() {
  static const double seconds = [] {
    const char* const text = std::getenv("CUDA_ON_HOST_HANGS_AFTER");
    return text == nullptr ? 30 : std::atof(text);
  }();
  return seconds;
}

// The handle of a thread on itself; its end is the thread's end.
struct Registered {
  Thread thread;
  Registered() {
    const std::lock_guard<std::mutex> lock(state().mutex);
    state().threads.push_back(&thread);
    thread.epoch = state().epoch;
  }
  ~Registered();
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;
};

bool can_take_turn(const Thread& t) {
  return t.enrolled && !t.waits && !t.absent;
}

// Gives the turn to one of those that can take it; to nobody if there is none.
void draw_turn() {
  State& s = state();
  std::vector<Thread*> can;
  for (Thread* const t : s.threads)
    if (can_take_turn(*t) && --t->rests < 0) can.push_back(t);
  if (can.empty()) {
    for (Thread* const t : s.threads)
      if (can_take_turn(*t)) can.push_back(t);
  }
  for (Thread* const t : can) t->rests = 0;
  std::sort(can.begin(), can.end(),
            [](const Thread* a, const Thread* b) { return a->rank < b->rank; });
  s.turn = can.empty() ? nullptr : can[draw(can.size())];
  s.changed.notify_all();
}

// Returns without a turn where nobody can take it: the thread is then in wait() and looks again, after it has let
// the lock go. An absent thread needs the lock to come back.
void await_turn(Thread& me) {
  State& s = state();
  while (s.turn != &me) {
    if (s.turn == nullptr) draw_turn();
    Thread* const holder = s.turn;
    if (holder == nullptr || holder == &me) return;
    const bool moved = s.changed.wait_for(me.lock, std::chrono::duration<double>(s.absent_after_s),
                                          [&] { return s.turn != holder; });
    if (!moved && s.turn == holder && holder->calls_deep == 0) {
      holder->absent = true;
      draw_turn();
    }
  }
}

Registered::~Registered() {
  const std::lock_guard<std::mutex> lock(state().mutex);
  std::erase(state().threads, &thread);
  if (state().turn == &thread) draw_turn();
  wake_all();
}

}  // namespace

State& state() {
  static State* const one = new State;  // outlives threads and static objects
  return *one;
}

Thread& this_thread() {
  thread_local Registered registered;
  return registered.thread;
}

std::uint64_t draw(std::uint64_t below) {
  return below < 2 ? 0 : state().random() % below;
}

cudaError_t failed(cudaError_t error) {
  // "Not ready" is an answer, and leaves no error behind.
  if (error != cudaSuccess && error != cudaErrorNotReady) this_thread().last_error = error;
  return error;
}

namespace {

// What a program that knows nothing of the double was started with (README.md).
void apply_environment() {
  State& s = state();
  if (std::exchange(s.environment_is_applied, true)) return;
  if (const char* const devices = std::getenv("CUDA_ON_HOST_DEVICES"))
    s.devices = std::atoi(devices);
  if (const char* const clock = std::getenv("CUDA_ON_HOST_CLOCK"))
    s.clock.model = parse_clock(clock);
  const char* const fault = std::getenv("CUDA_ON_HOST_FAIL");
  if (fault == nullptr) return;
  const std::string text = fault;  // "cudaMalloc:2:2"
  const std::size_t first = text.find(':');
  const std::size_t second = text.find(':', first + 1);
  if (second == std::string::npos) die("CUDA_ON_HOST_FAIL is FUNCTION:CALL:ERROR, and not " + text);
  s.faults.insert({text.substr(0, first),
                   {std::atol(text.c_str() + first + 1), std::atoi(text.c_str() + second + 1)}});
}

}  // namespace

ApiCall::ApiCall(const char* name) {
  Thread& me = this_thread();
  State& s = state();
  if (me.calls_deep == 0) me.lock = std::unique_lock<std::mutex>(s.mutex);
  if (me.calls_deep++ == 0 && me.enrolled) {
    me.absent = false;
    await_turn(me);
    draw_turn();
    await_turn(me);
  }
  apply_environment();
  ++s.calls[name];
  const auto range = s.faults.equal_range(name);
  for (auto fault = range.first; fault != range.second; ++fault) {
    if (--fault->second.call > 0) continue;
    injected_ = fault->second.error;
    s.faults.erase(fault);
    break;
  }
}

ApiCall::~ApiCall() {
  Thread& me = this_thread();
  if (--me.calls_deep == 0) me.lock = {};
}

void wake_all() {
  for (Thread* const t : state().threads) t->waits = false;
  state().changed.notify_all();
}

void enrol(const void* group, int rank, int ranks) {
  Thread& me = this_thread();
  me.comes_with = group;
  me.rank = rank;
  const auto of_group = [&](const Thread* t) { return t->comes_with == group; };
  if (std::count_if(state().threads.begin(), state().threads.end(), of_group) < ranks) return;
  for (Thread* const t : state().threads) {
    if (!of_group(t)) continue;
    t->enrolled = true;
    t->waits = t->absent = false;
    t->comes_with = nullptr;
  }
  if (state().turn == nullptr) draw_turn();
}

void leave() {
  Thread& me = this_thread();
  me.enrolled = false;
  me.comes_with = nullptr;
  wake_all();
  if (state().turn == &me) draw_turn();
}

namespace {

std::string deadlock(const char* why) {
  std::string text = std::string("deadlock in ") + why + ": nothing can run, and every rank waits";
  for (const Stream* const stream : state().busy) {
    const Operation& head = *stream->queue.front();
    text += "\n  " + name_of(*stream) + ": " + head.what;
    if (head.waits_for) text += " waits for " + head.waits_for();
    for (const OperationPointer& earlier : head.after)
      if (!earlier->done)
        text += " waits for " + earlier->what + " of " + name_of(*earlier->stream);
  }
  return text;
}

}  // namespace

void wait(const std::function<bool()>& finished,
          const std::function<std::vector<Operation*>()>& wanted, const char* why) {
  State& s = state();
  Thread& me = this_thread();
  const auto happened = [&s] { return s.operations + s.progress + s.hash; };
  std::uint64_t last = happened();
  auto since = std::chrono::steady_clock::now();
  while (!finished()) {
    if (step(wanted())) continue;
    if (happened() != last) {
      last = happened();
      since = std::chrono::steady_clock::now();
    }
    me.waits = true;
    const auto others = [&](auto&& which) {
      return std::any_of(s.threads.begin(), s.threads.end(),
                         [&](const Thread* t) { return t != &me && which(*t); });
    };
    if (me.enrolled && others(can_take_turn)) {
      draw_turn();
      await_turn(me);
      continue;
    }
    // Threads that are busy outside of CUDA may still bring what is missing.
    const bool may_come = s.awaits_processes || others([&](const Thread& t) {
                            return me.enrolled ? t.enrolled && t.absent : !t.waits;
                          });
    if (!may_come ||
        std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count() >
            hangs_after_s()) {
      me.waits = false;
      die(deadlock(why));
    }
    s.changed.wait_for(me.lock, 20ms);
    if (me.enrolled) await_turn(me);
  }
  me.waits = false;
}

bool wait_on_host(const std::function<bool()>& condition, double seconds) {
  Thread& me = this_thread();
  if (me.enrolled) {
    me.absent = true;
    if (state().turn == &me) draw_turn();
  }
  const bool holds =
      state().changed.wait_for(me.lock, std::chrono::duration<double>(seconds), condition);
  if (me.enrolled) {
    me.absent = false;
    await_turn(me);
  }
  return holds;
}

void await_processes(bool may_come) {
  state().awaits_processes = may_come;
}

void notify() {
  state().changed.notify_all();
}
std::uint64_t& progress() {
  return state().progress;
}

void die(const std::string& what) {
  std::fprintf(stderr, "cuda_on_host: %s\n", what.c_str());
  if (state().throws_on_misuse) throw std::logic_error(what);
  std::abort();
}

}  // namespace cuda_on_host

// What control.cc finds by dlsym.
#include <algorithm>

#include "tests/support/cuda_on_host/capture.h"
#include "tests/support/cuda_on_host/device.h"
#include "tests/support/cuda_on_host/happens_before.h"
#include "tests/support/cuda_on_host/hooks.h"
#include "tests/support/cuda_on_host/memory.h"
#include "tests/support/cuda_on_host/state.h"
#include "tests/support/cuda_on_host/trace.h"

namespace {

using namespace cuda_on_host;  // NOLINT: this is its inside

// The lock, without counting a call.
class Hook {
 public:
  Hook() {
    static_cast<void>(this_thread());  // is registered under the lock
    lock_ = std::unique_lock<std::mutex>(state().mutex);
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

void reset(int order, std::uint64_t seed) {
  const Hook hook;
  State& s = state();
  ++s.epoch;
  s.order = static_cast<Order>(order);
  s.random.seed(seed);
  s.devices = 8;
  s.busy.clear();
  s.legacy.clear();
  s.per_thread.clear();
  forget_graphs();
  s.events.clear();
  s.streams.clear();
  s.streams_made.clear();
  s.operations = 0;
  s.time_ms = 0;
  s.clock = {};
  s.clock.random.seed(seed);
  s.hash = 14695981039346656037U;  // FNV-1a
  s.progress = 0;
  s.calls.clear();
  s.faults.clear();
  s.device_faults.clear();
  s.device_operations.clear();
  s.sticky.clear();
  s.throws_on_misuse = false;
  s.environment_is_applied = true;  // a test says what it wants by control.h
  s.turn = nullptr;
  for (Thread* const t : s.threads) {
    t->device = 0;
    t->last_error = cudaSuccess;
    t->capture_mode = cudaStreamCaptureModeGlobal;
    t->enrolled = t->waits = t->absent = false;
    t->comes_with = nullptr;
    t->questions = t->rests = 0;
    t->now_s = 0;
  }
  forget_peers();
  forget_all_accesses();
  forget_trace();
  s.absent_after_s = usual_absence_s;
  forget_all_memory();
  set_memory_limit(0);
}

void fail(const char* function, int number, int error) {
  const Hook hook;
  state().faults.insert({function, {number, error}});
}

void break_device(int device, int number, int error) {
  const Hook hook;
  const long before = state().device_operations[device];
  state().device_faults[device] = {before + number, static_cast<cudaError_t>(error)};
}

void limit_memory(std::size_t bytes) {
  const Hook hook;
  set_memory_limit(bytes);
}

void set_devices(int count) {
  const Hook hook;
  state().devices = count;
}

long calls(const char* function) {
  const Hook hook;
  long all = 0;
  for (const auto& [name, count] : state().calls)
    if (function == nullptr || name == function) all += count;
  return all;
}

void visit_all(const std::vector<std::string>& lines, VisitLine visit, void* self) {
  for (const std::string& line : lines) visit(self, line.c_str());
}

void visit_called(VisitLine visit, void* self) {
  const Hook hook;
  for (const auto& [name, count] : state().calls) visit(self, name.c_str());
}

void visit_races(VisitLine visit, void* self) {
  const Hook hook;
  visit_all(found_races(), visit, self);
}

void visit_leaks(VisitLine visit, void* self) {
  const Hook hook;
  visit_all(memory_leaks(), visit, self);
  visit_all(graph_leaks(), visit, self);
  std::vector<std::string> lines;
  for (const auto& [handle, stream] : state().streams)
    if (!stream->destroyed &&
        (stream->kind == Stream::Kind::blocking || stream->kind == Stream::Kind::non_blocking)) {
      const bool of_a_thread =
          std::any_of(state().per_thread.begin(), state().per_thread.end(),
                      [&](const auto& entry) { return entry.second == stream.get(); });
      if (!of_a_thread) lines.push_back(name_of(*stream));
    }
  for (const auto& [handle, event] : state().events)
    if (!event->destroyed) lines.push_back("an event of device " + std::to_string(event->device));
  std::sort(lines.begin(), lines.end());
  visit_all(lines, visit, self);
}

std::uint64_t schedule_hash() {
  const Hook hook;
  return state().hash;
}

void throw_on_misuse(bool on) {
  const Hook hook;
  state().throws_on_misuse = on;
}

void host_access(const void* first, std::size_t bytes, bool writes) {
  const Hook hook;
  host_touches({static_cast<const std::byte*>(first), bytes, writes}, "the host");
}

void set_clock(const char* model) {
  const Hook hook;
  state().clock.model = parse_clock(model);
}

std::size_t remembered() {
  const Hook hook;
  return known_accesses();
}

void record_waits_of(int device) {
  const Hook hook;
  record_waits(device);
}

void visit_waits(VisitWait visit, void* self) {
  const Hook hook;
  for (const JudgedWait& wait : judged_waits())
    visit(self, static_cast<int>(wait.without), wait.what.c_str());
}

void overlook(int device, int number) {
  const Hook hook;
  overlook_wait(device, number);
}

void pass_over_after(double seconds) {
  const Hook hook;
  state().absent_after_s = seconds;
}

}  // namespace

extern "C" const cuda_on_host::Hooks* cuda_on_host_hooks() {
  static const cuda_on_host::Hooks hooks = {reset,           fail,
                                            break_device,    limit_memory,
                                            set_devices,     calls,
                                            visit_called,    visit_races,
                                            visit_leaks,     schedule_hash,
                                            throw_on_misuse, host_access,
                                            remembered,      record_waits_of,
                                            visit_waits,     overlook,
                                            pass_over_after, set_clock};
  return &hooks;
}

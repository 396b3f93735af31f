// What the double of libcudart remembers: host threads, streams, events, and what a test has asked for.
// All of it is guarded by one lock (world.h); memory, kernels and graphs keep their own tables.
#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/support/cuda_on_host/clock.h"
#include "tests/support/cuda_on_host/order.h"
#include "tests/support/cuda_on_host/world.h"

namespace cuda_on_host {

struct Capture;  // capture.h

struct Stream {
  // A lane is where nodes of a graph run. Nothing orders it but the graph's edges.
  enum class Kind { legacy, blocking, non_blocking, lane };

  int device = 0;
  int id = 0;  // in its device, by age
  Kind kind = Kind::blocking;
  int priority = 0;
  std::deque<OperationPointer> queue;  // not yet run
  OperationPointer tail;               // the last that was issued
  std::uint64_t issued = 0;
  bool destroyed = false;
  double is_free_at = 0;  // on the virtual clock: the end of the last that ran

  // While it is captured:
  std::shared_ptr<Capture> capture;
  std::vector<std::size_t> capture_ends;  // nodes that the next one comes after
};

struct Event {
  int device = 0;
  bool has_time = true;
  OperationPointer record;  // the last; null if there was none
  std::shared_ptr<double> time_ms;
  // Where the last record was captured:
  std::shared_ptr<Capture> capture;
  std::vector<std::size_t> capture_ends;
  bool destroyed = false;
};

// A host thread that has called the API since reset().
struct Thread {
  std::uint64_t epoch = 0;
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
  int calls_deep = 0;
  bool in_host_function = false;
  double now_s = 0;   // on the virtual clock
  int questions = 0;  // whether something is done, in a row and in vain
  int rests = 0;      // for this many turns, if others can take them: it would only ask again
  std::unique_lock<std::mutex> lock;

  // Turns (turns.cc).
  bool enrolled = false;
  const void* comes_with = nullptr;  // the group with which it is about to be enrolled
  int rank = 0;
  bool waits = false;
  bool absent = false;
};

struct ByDeviceAndId {
  bool operator()(const Stream* a, const Stream* b) const {
    return std::pair(a->device, a->id) < std::pair(b->device, b->id);
  }
};

// An enrolled thread that does not come for its turn for so long waits for something outside of CUDA,
// such as a barrier of the program. The others go on without it; the schedule may then differ from run
// to run.
inline constexpr double usual_absence_s = 0.1;

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t epoch = 1;  // rises with each reset()

  Order order = Order::eager;
  std::mt19937_64 random{1};
  int devices = 8;

  std::unordered_map<const void*, std::unique_ptr<Stream>> streams;
  std::unordered_map<const void*, std::unique_ptr<Event>> events;
  std::map<int, Stream*> legacy;                                // of each device
  std::map<std::pair<const Thread*, int>, Stream*> per_thread;  // of each thread and device
  std::map<int, int> streams_made;                              // of each device
  std::set<Stream*, ByDeviceAndId> busy;                        // with something in the queue
  std::uint64_t operations = 0;                                 // issued
  double time_ms = 0;  // of the operation that runs, or where there is no virtual clock of all
  ClockState clock;
  std::uint64_t hash = 0;
  std::uint64_t progress = 0;
  const Operation* running = nullptr;

  std::vector<Thread*> threads;  // that are alive
  double absent_after_s = usual_absence_s;
  Thread* turn = nullptr;  // the enrolled thread whose turn it is

  std::map<std::string, long> calls;
  struct Fault {
    long call = 0;
    int error = 0;
  };
  std::multimap<std::string, Fault> faults;
  struct DeviceFault {
    long operation = 0;
    cudaError_t error = cudaSuccess;
  };
  std::map<int, DeviceFault> device_faults;
  std::map<int, long> device_operations;  // that ran
  std::map<int, cudaError_t> sticky;      // of a device that is broken
  bool throws_on_misuse = false;
  bool awaits_processes = false;
  bool environment_is_applied = false;
};

[[nodiscard]] State& state();
[[nodiscard]] Thread& this_thread();

// A number from 0 to below - 1, by the seed.
[[nodiscard]] std::uint64_t draw(std::uint64_t below);

// Sets the thread's last error, as every function that fails does.
cudaError_t failed(cudaError_t error);

// The thread that has its turn may have changed what others wait for: they look again.
void wake_all();

Stream* make_stream(int device, Stream::Kind kind, int priority);
// Aborts (die) for an event that was destroyed or never was.
[[nodiscard]] Event* event_of(cudaEvent_t handle);
// "stream 2 of device 0"
[[nodiscard]] std::string name_of(const Stream& stream);

// Lets the host wait for everything in the stream, and returns the device's sticky error.
cudaError_t synchronise(Stream* stream);
// Lets the host wait for one operation.
void synchronise(const OperationPointer& operation, const char* why);
// Runs one operation that can run; in the order `latest` only if one of `wanted` needs it.
bool step(const std::vector<Operation*>& wanted);
// Operations may run while the host asks whether `asked` has: in the order random some now and then,
// and in the order latest, when the thread has asked often, all that `asked` needs.
void step_by_chance(Operation* asked);
// Puts a ready-made operation into a stream that is not captured.
OperationPointer issue(Stream* stream, OperationPointer operation);

// The body of a function of the runtime: counts the call, applies faults, returns the device's sticky
// error, and sets the last error.
template <class Body>
cudaError_t call(const char* name, Body body) {
  const ApiCall api(name);
  Thread& thread = this_thread();
  if (api.injected() == does_nothing) return cudaSuccess;
  if (api.injected() != 0) return failed(static_cast<cudaError_t>(api.injected()));
  if (thread.in_host_function) return failed(cudaErrorNotPermitted);
  const auto broken = state().sticky.find(thread.device);
  if (broken != state().sticky.end()) return failed(broken->second);
  return failed(body());
}

// The same for what only chooses or counts devices, which a broken one does not prevent.
template <class Body>
cudaError_t call_about_devices(const char* name, Body body) {
  const ApiCall api(name);
  if (api.injected() != 0) return failed(static_cast<cudaError_t>(api.injected()));
  if (this_thread().in_host_function) return failed(cudaErrorNotPermitted);
  return failed(body());
}

// The same for what gives something back. It does so in every case, and the error, an injected one
// too, is only reported: "may also return error codes from previous, asynchronous launches".
template <class Body>
cudaError_t call_that_releases(const char* name, Body body) {
  const ApiCall api(name);
  Thread& thread = this_thread();
  if (thread.in_host_function) return failed(cudaErrorNotPermitted);
  const cudaError_t status = body();
  if (api.injected() != 0) return failed(static_cast<cudaError_t>(api.injected()));
  const auto broken = state().sticky.find(thread.device);
  return failed(broken != state().sticky.end() ? broken->second : status);
}

}  // namespace cuda_on_host

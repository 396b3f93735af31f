// The inside of the doubles: operations in streams, the seeded scheduler that runs them, and turns
// between ranks that are threads. The double of libcudart implements it and exports it; the double
// of libnccl uses it. Nothing of Paceline sees it, and tests use control.h.
//
// One lock guards all of it. A function of the API takes it by an ApiCall, and everything below is
// called with the lock held.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cuda_on_host {

struct Stream;

// Memory that an operation touches.
struct Access {
  const std::byte* first = nullptr;
  std::size_t bytes = 0;
  bool writes = false;
};

// How many operations of each stream happen before: a vector clock. What the host has waited for is
// left out (happens_before.h).
using Clock = std::map<const void*, std::uint64_t>;

// One operation of a stream: a kernel, a copy, or a part of a collective. While it runs, memory that
// it does not name in `accesses` is closed to it, and a touch ends the program (memory.h); to one
// with a ready(), which may run parts of others, everything is open.
struct Operation {
  std::string what;  // for messages: "copy of 4096 bytes"
  std::vector<Access> accesses;
  std::function<void()> run;

  // For what waits for more than its stream and events, such as a collective that waits for peers:
  // whether it can run, which operations would have to move for that, and on what it waits, in
  // words, for the report of a deadlock. A call of ready() that changes something raises
  // progress().
  std::function<bool()> ready = {};
  std::function<std::vector<Operation*>()> needs = {};
  std::function<std::string()> waits_for = {};

  // For the virtual clock (clock.h).
  std::string timed_as = {};  // in place of `what`
  double timed_bytes = -1;    // in place of those of `accesses`, unless it is below 0
  bool is_record = false;     // of an event
  bool is_work = false;       // a kernel, a copy or a fill
  double issued_at = 0;       // on the clock of the host, in seconds
  double not_before = 0;      // when those that it meets have come
  double begins_at = 0;
  double ends_at = 0;

  // Set by the scheduler.
  std::vector<std::shared_ptr<Operation>> after = {};
  Stream* stream = nullptr;
  std::uint64_t number = 0;  // in its stream
  std::uint64_t age = 0;     // among all operations
  Clock clock = {};          // what happens before it
  int wait = 0;  // its number among the device's waits, of a wait for an event (trace.h)
  bool done = false;
};
using OperationPointer = std::shared_ptr<Operation>;

// Makes the same operation again: a captured one is made once for each launch of its graph.
using MakeOperation = std::function<OperationPointer()>;

// Every function of the API begins with one. It takes the lock and, for a rank that has its turn with
// others, waits for the turn. It counts the call and applies faults that a test injected.
class ApiCall {
 public:
  explicit ApiCall(const char* name);
  ~ApiCall();
  ApiCall(const ApiCall&) = delete;
  ApiCall& operator=(const ApiCall&) = delete;
  // The error that a test injected into this call (a cudaError_t or ncclResult_t), or 0.
  [[nodiscard]] int injected() const { return injected_; }

 private:
  int injected_ = 0;
};

// The stream of a handle. Aborts (die) for a stream that was destroyed or never was.
[[nodiscard]] Stream* stream_of(cudaStream_t handle);
[[nodiscard]] int device_of(const Stream& stream);
// Puts an operation behind the others of the stream. In a capture the operation is recorded
// instead, and the result is null.
OperationPointer enqueue(Stream* stream, const MakeOperation& make);
// When the operation, which stands at the head of its stream, could begin on the virtual clock.
[[nodiscard]] double arrival_of(const Operation& operation);
// For libraries that launch kernels, as a launch does it: what one into the stream would return
// without launching anything (a sticky error, another device, the legacy stream beside a capture); what
// a call returns that is unsafe during captures, which it invalidates; and the end (die) of an
// operation of the device that touches memory which it must not.
[[nodiscard]] int current_device();
// Ten times the compute capability; 0 for a device that there is not.
[[nodiscard]] int architecture_of(int device);
[[nodiscard]] cudaError_t launch_error(const Stream& stream);
[[nodiscard]] cudaError_t unsafe_call_error();
void check_accesses(const Operation& operation, int device);
// Whether operations do what they say, and are not only timed.
[[nodiscard]] bool runs_bodies();
// What stands at the head of an operation's stream, in words.
[[nodiscard]] std::string head_of(const Operation& operation);
// Lets the operations that match end without running: those of a communicator that was aborted.
void drop_operations(const std::function<bool(const Operation&)>& which);
// Rises whenever a ready() changed something.
[[nodiscard]] std::uint64_t& progress();

// Ranks that are threads take turns, in an order that the seed draws, so that the same seed repeats
// the same schedule. The threads of a group are enrolled together, when all its ranks have called
// enrol(); each then waits for the others by wait_on_host(). A rank leaves with its last
// communicator.
void enrol(const void* group, int rank, int ranks);
void leave();

// Whether other processes may bring what is waited for. A deadlock is then one only after some time.
void await_processes(bool may_come);
// Runs one of the operations that can run; of those that `wanted` need where the order is the latest.
// Returns whether there was one.
bool run_one(const std::vector<Operation*>& wanted);

// Runs operations until `finished` says so. `wanted` are the operations that the caller waits for.
// Reports a deadlock (die) if nothing can run, with what every rank waits for; `why` says who waits.
void wait(const std::function<bool()>& finished,
          const std::function<std::vector<Operation*>()>& wanted, const char* why);
// For a rendezvous before ranks have turns: blocks on the lock's condition until `condition` holds
// or this many seconds have passed; returns whether it holds. notify() wakes such waits.
[[nodiscard]] bool wait_on_host(const std::function<bool()>& condition, double seconds);
void notify();

// Strictness: prints what is wrong, and calls the test's handler (control.h), which throws, or
// aborts. A real library would go on, crash or hang.
[[noreturn]] void die(const std::string& what);

}  // namespace cuda_on_host

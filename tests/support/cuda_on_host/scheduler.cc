// Streams: operations are put into queues, and run in the order that the test chose.
#include <algorithm>
#include <unordered_set>

#include "tests/support/cuda_on_host/capture.h"
#include "tests/support/cuda_on_host/happens_before.h"
#include "tests/support/cuda_on_host/kernels.h"
#include "tests/support/cuda_on_host/memory.h"
#include "tests/support/cuda_on_host/state.h"
#include "tests/support/cuda_on_host/trace.h"

namespace cuda_on_host {
namespace {

void add_to_hash(std::string_view text, std::uint64_t number) {
  constexpr std::uint64_t prime = 1099511628211U;  // FNV-1a
  std::uint64_t& hash = state().hash;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * prime;
  hash = (hash ^ number) * prime;
}

bool is_broken(int device) {
  return state().sticky.contains(device);
}

// At the head of its queue.
bool can_run(const Operation& operation) {
  for (const OperationPointer& earlier : operation.after)
    if (!earlier->done) return false;
  return is_broken(operation.stream->device) || !operation.ready || operation.ready();
}

void advance_time(Operation& operation) {
  constexpr double s_to_ms = 1e3;
  if (state().clock.model.is_on) {
    set_times(operation);
    state().time_ms = operation.ends_at * s_to_ms;
    return;
  }
  constexpr double launch_ms = 1e-3;
  constexpr double bytes_per_ms = 1e9;
  double bytes = 0;
  for (const Access& access : operation.accesses) bytes += static_cast<double>(access.bytes);
  state().time_ms += launch_ms + bytes / bytes_per_ms;
}

// Breaks the device if a test asked for that from this operation on.
void apply_device_fault(const Operation& operation) {
  State& s = state();
  if (operation.accesses.empty()) return;  // events and waits are no operations to a test
  const int device = operation.stream->device;
  const long number = ++s.device_operations[device];
  const auto fault = s.device_faults.find(device);
  if (fault != s.device_faults.end() && number >= fault->second.operation)
    s.sticky.try_emplace(device, fault->second.error);
}

// Runs what stands at the head of its queue.
void run(const OperationPointer& operation) {
  State& s = state();
  Stream& stream = *operation->stream;
  stream.queue.pop_front();
  if (stream.queue.empty()) s.busy.erase(&stream);
  const bool meets_others = static_cast<bool>(operation->ready);
  if (!meets_others) advance_time(*operation);
  add_to_hash(operation->what, static_cast<std::uint64_t>(stream.device) << 32U |
                                   static_cast<std::uint64_t>(stream.id));
  apply_device_fault(*operation);
  const std::function<void()> body = std::move(operation->run);
  struct End {
    Operation& operation;
    bool is_timed;
    ~End() {
      // An operation that meets others was given its times when the last of them came.
      if (!is_timed) advance_time(operation);
      operation.done = true;
      operation.after.clear();
      operation.run = nullptr;
      operation.ready = nullptr;
      operation.needs = nullptr;
      operation.waits_for = nullptr;
      wake_all();
    }
  } end{*operation, !meets_others};
  if (!body || is_broken(stream.device)) return;
  if (operation->is_work && !runs_bodies()) return;
  open_for(*operation);
  struct Closed {
    const Operation& operation;
    const Operation* before = state().running;
    explicit Closed(const Operation& o) : operation(o) { state().running = &o; }
    ~Closed() {
      state().running = before;
      close_after(operation);
    }
  } closed{*operation};
  try {
    body();
  } catch (const KernelFault& fault) {
    std::fprintf(stderr, "cuda_on_host: %s: %s\n", operation->what.c_str(), fault.what.c_str());
    s.sticky.try_emplace(stream.device, fault.error);
  }
}

// The streams whose heads one of the operations needs, with all that these wait for.
std::set<Stream*, ByDeviceAndId> needed_streams(const std::vector<Operation*>& wanted) {
  std::map<Stream*, std::uint64_t, ByDeviceAndId> up_to;  // the last number that is needed
  std::vector<Operation*> to_do;
  for (Operation* const o : wanted)
    if (o != nullptr) to_do.push_back(o);
  while (!to_do.empty()) {
    Operation* const operation = to_do.back();
    to_do.pop_back();
    if (operation->done || operation->stream == nullptr) continue;
    std::uint64_t& known = up_to[operation->stream];
    if (known >= operation->number) continue;
    for (const OperationPointer& queued : operation->stream->queue) {
      if (queued->number <= known) continue;
      if (queued->number > operation->number) break;
      for (const OperationPointer& earlier : queued->after) to_do.push_back(earlier.get());
      if (queued->needs)
        for (Operation* const needed : queued->needs()) to_do.push_back(needed);
    }
    known = operation->number;
  }
  std::set<Stream*, ByDeviceAndId> streams;
  for (const auto& [stream, number] : up_to)
    if (!stream->queue.empty()) streams.insert(stream);
  return streams;
}

// ready() of one operation may let another one run: the heads are asked until nothing changes, since
// otherwise the order of asking would show.
std::vector<OperationPointer> runnable(const std::vector<Operation*>& wanted) {
  State& s = state();
  std::vector<OperationPointer> can;
  for (;;) {
    const std::uint64_t before = s.progress;
    can.clear();
    const auto streams = s.order == Order::latest ? needed_streams(wanted) : s.busy;
    for (Stream* const stream : streams)
      if (can_run(*stream->queue.front())) can.push_back(stream->queue.front());
    if (s.progress == before) return can;
  }
}

// What blocks on the same device, with the legacy stream on one side, waits for one another.
void add_legacy_order(Stream* stream, Operation& operation) {
  State& s = state();
  const auto comes_after = [&](const Stream& earlier) {
    if (&earlier == stream || earlier.tail == nullptr) return;
    record_order(*earlier.tail);
    join(operation.clock, *earlier.tail);
    if (!earlier.tail->done) operation.after.push_back(earlier.tail);
  };
  if (stream->kind == Stream::Kind::blocking) {
    const auto legacy = s.legacy.find(stream->device);
    if (legacy != s.legacy.end()) comes_after(*legacy->second);
  }
  if (stream->kind == Stream::Kind::legacy)
    for (const auto& [handle, other] : s.streams)
      if (other->device == stream->device && other->kind == Stream::Kind::blocking)
        comes_after(*other);
}

}  // namespace

bool step(const std::vector<Operation*>& wanted) {
  const std::vector<OperationPointer> can = runnable(wanted);
  if (can.empty()) return false;
  if (state().order == Order::eager)
    run(*std::min_element(can.begin(), can.end(),
                          [](const auto& a, const auto& b) { return a->age < b->age; }));
  else
    run(can[draw(can.size())]);
  return true;
}

bool run_one(const std::vector<Operation*>& wanted) {
  return step(wanted);
}

void step_by_chance(Operation* asked) {
  constexpr int often = 4;
  constexpr int longest_rest = 1000;
  Thread& me = this_thread();
  if (state().order == Order::random && draw(2) == 0)
    while (step({}) && draw(16) != 0) {
    }
  if (state().order == Order::eager)  // what could not run when it was issued, and was dropped then
    while (step({})) {
    }
  if (asked == nullptr || asked->done) {
    me.questions = 0;
    return;
  }
  if (++me.questions % often == 0 && state().order == Order::latest)
    while (!asked->done && step({asked})) {
    }
  me.rests = std::min(longest_rest, me.questions * me.questions);
}

OperationPointer issue(Stream* stream, OperationPointer operation) {
  State& s = state();
  operation->stream = stream;
  operation->number = ++stream->issued;
  operation->age = ++s.operations;
  Thread& host = this_thread();
  if (stream->kind != Stream::Kind::lane) host.now_s += s.clock.model.host_s;
  operation->issued_at = host.now_s;
  for (const OperationPointer& earlier : operation->after) {
    record_order(*earlier, operation->wait);
    if (!is_overlooked(stream->device, operation->wait)) join(operation->clock, *earlier);
  }
  if (stream->tail != nullptr) {
    record_order(*stream->tail);
    join(operation->clock, *stream->tail);
  }
  add_legacy_order(stream, *operation);
  operation->clock[stream] = operation->number;
  check_races(*operation);
  record_issue(*operation);
  close_pinned(*operation);
  stream->tail = operation;
  stream->queue.push_back(operation);
  s.busy.insert(stream);
  wake_all();
  if (s.order == Order::eager)
    while (step({})) {
    }
  else if (s.order == Order::random)
    while (draw(3) == 0 && step({})) {
    }
  return operation;
}

OperationPointer enqueue(Stream* stream, const MakeOperation& make) {
  if (stream->capture != nullptr) {
    capture_operation(stream, make);
    return nullptr;
  }
  return issue(stream, make());
}

void synchronise(const OperationPointer& operation, const char* why) {
  wait([&] { return operation->done; }, [&] { return std::vector<Operation*>{operation.get()}; },
       why);
  Thread& host = this_thread();
  host.now_s = std::max(host.now_s, operation->ends_at);
  const int number = count_wait(operation->stream->device);
  record_host_wait(*operation, number);
  if (!is_overlooked(operation->stream->device, number)) host_waited_for(*operation);
  open_waited_pinned();
}

cudaError_t synchronise(Stream* stream) {
  const OperationPointer last = stream->tail;
  if (last != nullptr) synchronise(last, "synchronisation of a stream");
  const auto broken = state().sticky.find(stream->device);
  return broken == state().sticky.end() ? cudaSuccess : broken->second;
}

std::string head_of(const Operation& operation) {
  return operation.stream == nullptr || operation.stream->queue.empty()
             ? ""
             : operation.stream->queue.front()->what;
}

void drop_operations(const std::function<bool(const Operation&)>& which) {
  for (Stream* const stream : state().busy)
    for (const OperationPointer& operation : stream->queue) {
      if (!which(*operation)) continue;
      operation->ready = nullptr;
      operation->needs = nullptr;
      operation->waits_for = nullptr;
      operation->run = nullptr;
    }
  wake_all();
}

std::string name_of(const Stream& stream) {
  std::string name = stream.kind == Stream::Kind::legacy ? "the legacy stream"
                     : stream.kind == Stream::Kind::lane
                         ? "a graph's lane " + std::to_string(stream.id)
                         : "stream " + std::to_string(stream.id);
  return name + " of device " + std::to_string(stream.device);
}

int device_of(const Stream& stream) {
  return stream.device;
}

Stream* make_stream(int device, Stream::Kind kind, int priority) {
  auto stream = std::make_unique<Stream>();
  stream->device = device;
  stream->id = ++state().streams_made[device];
  stream->kind = kind;
  stream->priority = priority;
  Stream* const kept = stream.get();
  state().streams.emplace(kept, std::move(stream));
  return kept;
}

Stream* stream_of(cudaStream_t handle) {
  State& s = state();
  Thread& me = this_thread();
  if (handle == nullptr || handle == cudaStreamLegacy) {
    Stream*& stream = s.legacy[me.device];
    if (stream == nullptr) stream = make_stream(me.device, Stream::Kind::legacy, 0);
    return stream;
  }
  if (handle == cudaStreamPerThread) {
    Stream*& stream = s.per_thread[{&me, me.device}];
    if (stream == nullptr) stream = make_stream(me.device, Stream::Kind::blocking, 0);
    return stream;
  }
  const auto at = s.streams.find(handle);
  if (at == s.streams.end()) die("use of a handle that is no stream, or of a test before reset()");
  if (at->second->destroyed) die("use of a destroyed stream");
  return at->second.get();
}

Event* event_of(cudaEvent_t handle) {
  const auto at = state().events.find(handle);
  if (at == state().events.end())
    die("use of a handle that is no event, or of a test before reset()");
  if (at->second->destroyed) die("use of a destroyed event");
  return at->second.get();
}

}  // namespace cuda_on_host

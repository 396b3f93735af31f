// Tests: tests/runtime/loop/gradient_exchange_test.cc.
#include "runtime/exchange/gradient_exchange.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "models/base/error.h"
#include "runtime/tensor/kernels.h"
#include "runtime/transport/message_memory.h"
#include "runtime/transport/polling.h"

namespace paceline::runtime {
namespace {

using Clock = Recorder::Clock;

constexpr int most_under_way = 2;
// How long the communication thread sleeps between polls while nobody waits for it: it competes
// with backward for the core. A tenth of the time for which nothing has moved, within these bounds.
constexpr std::chrono::microseconds shortest_nap{50};
constexpr std::chrono::microseconds longest_nap{200};

// A library's own all-reduce runs where the transport has it.
void check_library(const models::Plan& plan, const models::PlannedSchedule& schedule,
                   const Transport& transport) {
  if (!schedule.library) return;
  if (schedule.algorithm != transport.name() || !transport.has_all_reduce())
    throw InputError(
        fmt::format("strategy {} is a library's own all-reduce, which transport {} does not have",
                    plan.strategy, transport.name()),
        "choose a strategy with a schedule, such as fused-ring");
  if (plan.wire != models::WireType::fp32)
    throw InputError(fmt::format("{} adds no {}", schedule.algorithm, name(plan.wire)),
                     "choose --wire fp32, or a strategy with a schedule");
}

void check(const models::Plan& plan, std::span<const ParameterPlace> parameters,
           const Transport& transport) {
  if (plan.ranks != transport.ranks())
    throw InputError(
        fmt::format("a plan for {} ranks, and {} ranks", plan.ranks, transport.ranks()),
        "make the plan for the ranks that run it");
  if (plan.overlap == models::Overlap::priority)
    throw InputError("overlap priority cannot be run, only predicted",
                     "choose wait-free, double-buffered or none");
  std::size_t next = 0;
  for (const models::Bucket& bucket : plan.buckets) {
    check_library(plan, plan.schedules[static_cast<std::size_t>(bucket.schedule)], transport);
    std::int64_t elements = 0;
    for (int i = 0; i < bucket.gradient_count && next < parameters.size(); ++i)
      elements += parameters[next++].elements;
    if (elements != bucket.elements)
      throw InputError("the plan's buckets are not of this network's gradients",
                       "make the plan for this network");
  }
  if (next != parameters.size())
    throw InputError("the plan leaves gradients out", "make the plan for this network");
}

// One iteration's gradients under way.
struct Flight {
  std::span<float> gradients;
  MessageMemory wire;  // the buckets in the wire type, unless that is FP32
  std::int64_t iteration = 0;
  int ready = 0;    // buckets that may start
  int started = 0;  // ... that have
  int done = 0;
  bool finite = true;
  Clock::time_point first_start;
  Clock::time_point last_end;
};

struct BucketPlace {
  std::int64_t offset = 0;  // of its first element in the flat array
  std::int64_t elements = 0;
  int last_parameter = 0;
  int stream = 0;
  Collective* collective = nullptr;  // null for a library's own all-reduce
};

}  // namespace

struct GradientExchange::State {
  State(Transport& t, const models::Plan& plan, std::span<const ParameterPlace> parameters,
        Recorder* r)
      : transport(t),
        executor(t),
        wire(plan.wire),
        waits_for_all(plan.overlap == models::Overlap::none),
        recorder(r) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < plan.buckets.size(); ++i) {
      const models::Bucket& bucket = plan.buckets[i];
      const std::int64_t offset = next < parameters.size() ? parameters[next].offset : 0;
      next += static_cast<std::size_t>(bucket.gradient_count);
      const int stream = static_cast<int>(i) % std::max(1, plan.streams);
      buckets.push_back({.offset = offset,
                         .elements = bucket.elements,
                         .last_parameter = static_cast<int>(next) - 1,
                         .stream = stream,
                         .collective = prepared(plan, bucket, stream)});
      elements += bucket.elements;
    }
    stream_free.resize(static_cast<std::size_t>(std::max(1, plan.streams)));
    travels = transport.ranks() > 1;
    for (Flight& flight : flights) {
      if (travels && wire != models::NumberType::fp32)
        flight.wire = MessageMemory(static_cast<std::size_t>(elements) * bytes_of(wire));
    }
  }

  // Null for a library's own.
  Collective* prepared(const models::Plan& plan, const models::Bucket& bucket, int stream) {
    const models::PlannedSchedule& planned =
        plan.schedules[static_cast<std::size_t>(bucket.schedule)];
    if (planned.library) return nullptr;
    return &executor.prepare(planned.schedule, bucket.elements, plan.wire, stream);
  }

  // The bucket's memory in the wire type.
  void* memory(Flight& flight, const BucketPlace& bucket) const {
    if (wire == models::NumberType::fp32) return flight.gradients.data() + bucket.offset;
    return flight.wire.bytes().data() + static_cast<std::size_t>(bucket.offset) * bytes_of(wire);
  }
  static std::span<float> values(const Flight& flight, const BucketPlace& bucket) {
    return flight.gradients.subspan(static_cast<std::size_t>(bucket.offset),
                                    static_cast<std::size_t>(bucket.elements));
  }
  void record(models::TaskKind kind, const Flight& flight, int bucket, Clock::time_point start,
              Clock::time_point end) const {
    if (recorder != nullptr)
      recorder->record(kind, models::Resource::communication, bucket, flight.iteration, start, end,
                       buckets[static_cast<std::size_t>(bucket)].stream);
  }

  void start(Flight& flight, int index);
  void land(Flight& flight, int index);
  bool start_ready();
  bool land_done();
  void run();

  Transport& transport;
  Executor executor;
  models::NumberType wire;
  bool waits_for_all = false;
  bool travels = false;
  Recorder* recorder = nullptr;
  std::vector<BucketPlace> buckets;
  std::int64_t elements = 0;

  struct InFlight {
    Flight* flight;
    int bucket;
    Clock::time_point start;
  };
  // Of the communication thread:
  std::deque<InFlight> in_flight;
  std::vector<Clock::time_point> stream_free;  // when a stream's last collective was done

  // Shared, under the mutex. Flights are used in turn: `begun` and `finished` count them.
  std::mutex mutex;
  std::condition_variable work;
  std::condition_variable progress;
  std::array<Flight, most_under_way> flights;
  std::int64_t begun = 0;
  std::int64_t finished = 0;
  int produced = 0;  // buckets complete in the iteration begun last; of the computing thread
  bool someone_waits = false;
  bool stopping = false;
  std::exception_ptr failure;
  std::thread thread;
};

void GradientExchange::State::start(Flight& flight, int index) {
  const BucketPlace& bucket = buckets[static_cast<std::size_t>(index)];
  const Clock::time_point before = Clock::now();
  if (wire != models::NumberType::fp32)
    cast_from_fp32(values(flight, bucket), wire, memory(flight, bucket));
  const Clock::time_point begin = Clock::now();
  if (wire != models::NumberType::fp32)
    record(models::TaskKind::cast, flight, index, before, begin);
  if (bucket.collective == nullptr) {
    transport.all_reduce(values(flight, bucket), transport.ranks());
    record(models::TaskKind::all_reduce, flight, index, begin, Clock::now());
    return land(flight, index);
  }
  in_flight.push_back({&flight, index, begin});
  executor.start(*bucket.collective, memory(flight, bucket));
}

void GradientExchange::State::land(Flight& flight, int index) {
  const BucketPlace& bucket = buckets[static_cast<std::size_t>(index)];
  const Clock::time_point before = Clock::now();
  if (wire != models::NumberType::fp32)
    cast_to_fp32(memory(flight, bucket), wire, values(flight, bucket));
  const bool finite = all_finite(values(flight, bucket));
  const Clock::time_point end = Clock::now();
  record(models::TaskKind::unpack, flight, index, before, end);
  const std::lock_guard lock(mutex);
  flight.finite = flight.finite && finite;
  ++flight.done;
  flight.last_end = end;
  progress.notify_all();
}

// Starts buckets in the order in which they became ready. A bucket whose collective still runs for
// the iteration before waits, and those behind it too: all ranks start in one order.
bool GradientExchange::State::start_ready() {
  bool any = false;
  for (;;) {
    Flight* flight = nullptr;
    int index = 0;
    {
      const std::lock_guard lock(mutex);
      for (std::int64_t i = finished; i < begun && flight == nullptr; ++i) {
        Flight& candidate = flights[static_cast<std::size_t>(i % most_under_way)];
        if (candidate.started == static_cast<int>(buckets.size())) continue;
        if (candidate.started == candidate.ready) return any;
        flight = &candidate;
      }
      if (flight == nullptr) return any;
      index = flight->started;
      for (const InFlight& other : in_flight) {
        if (other.bucket == index) return any;
      }
      ++flight->started;
      if (index == 0) flight->first_start = Clock::now();
    }
    start(*flight, index);
    any = true;
  }
}

bool GradientExchange::State::land_done() {
  bool any = false;
  for (auto i = in_flight.begin(); i != in_flight.end();) {
    const BucketPlace& bucket = buckets[static_cast<std::size_t>(i->bucket)];
    if (!executor.done(*bucket.collective)) {
      ++i;
      continue;
    }
    const InFlight landed = *i;
    i = in_flight.erase(i);
    // On one stream a collective runs after the one before it.
    Clock::time_point& free = stream_free[static_cast<std::size_t>(bucket.stream)];
    const Clock::time_point end = Clock::now();
    record(models::TaskKind::all_reduce, *landed.flight, landed.bucket,
           std::max(landed.start, free), end);
    free = end;
    land(*landed.flight, landed.bucket);
    any = true;
  }
  return any;
}

void GradientExchange::State::run() {
  ::prctl(PR_SET_TIMERSLACK, 1000UL);
  ::pthread_setname_np(::pthread_self(), "communication");
  const auto has_ready = [this] {
    for (std::int64_t i = finished; i < begun; ++i) {
      const Flight& flight = flights[static_cast<std::size_t>(i % most_under_way)];
      if (flight.started < flight.ready) return true;
    }
    return false;
  };
  Clock::time_point moved_at = Clock::now();
  try {
    for (;;) {
      bool hurry = false;
      {
        std::unique_lock lock(mutex);
        if (in_flight.empty()) work.wait(lock, [&] { return stopping || has_ready(); });
        if (stopping) return;
        hurry = someone_waits;
      }
      bool moved = start_ready();
      moved = executor.progress() || moved;
      moved = land_done() || moved;
      const Clock::time_point now = Clock::now();
      if (moved) {
        moved_at = now;
        continue;
      }
      const Clock::duration waited = now - moved_at;
      if (hurry)
        pause_between_looks(waited);
      else
        std::this_thread::sleep_for(
            std::clamp<Clock::duration>(waited / 10, shortest_nap, longest_nap));
    }
  } catch (...) {
    const std::lock_guard lock(mutex);
    failure = std::current_exception();
    progress.notify_all();
  }
}

GradientExchange::GradientExchange(Transport& transport, const models::Plan& plan,
                                   std::span<const ParameterPlace> parameters, Recorder* recorder) {
  check(plan, parameters, transport);
  state_ = std::make_unique<State>(transport, plan, parameters, recorder);
  if (state_->travels) state_->thread = std::thread([state = state_.get()] { state->run(); });
}

GradientExchange::~GradientExchange() {
  if (!state_->thread.joinable()) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->work.notify_all();
  }
  state_->thread.join();
  // Before the memory of what is in flight goes: a peer may be copying from it.
  if (!state_->in_flight.empty()) state_->transport.abort();
}

int GradientExchange::under_way() const {
  return static_cast<int>(state_->begun - state_->finished);
}

bool GradientExchange::is_back() const {
  PACELINE_ASSERT(under_way() > 0, "an iteration is under way");
  if (!state_->travels) return true;
  const std::lock_guard lock(state_->mutex);
  const Flight& oldest =
      state_->flights[static_cast<std::size_t>(state_->finished % most_under_way)];
  return state_->failure != nullptr || oldest.done == static_cast<int>(state_->buckets.size());
}

void GradientExchange::begin(std::span<float> gradients, std::int64_t iteration) {
  State& state = *state_;
  PACELINE_ASSERT(under_way() < most_under_way, "at most two iterations are under way");
  PACELINE_ASSERT(static_cast<std::int64_t>(gradients.size()) == state.elements,
                  "gradients are the whole flat array");
  const std::lock_guard lock(state.mutex);
  Flight& flight = state.flights[static_cast<std::size_t>(state.begun % most_under_way)];
  flight.gradients = gradients;
  flight.iteration = iteration;
  flight.ready = flight.started = flight.done = 0;
  flight.finite = true;
  ++state.begun;
  state.produced = 0;
}

void GradientExchange::ready(int parameter) {
  State& state = *state_;
  const int buckets = static_cast<int>(state.buckets.size());
  const int before = state.produced;
  while (state.produced < buckets &&
         state.buckets[static_cast<std::size_t>(state.produced)].last_parameter <= parameter) {
    ++state.produced;
  }
  const bool releases =
      state.produced > before && (!state.waits_for_all || state.produced == buckets);
  if (!releases) return;
  const std::lock_guard lock(state.mutex);
  state.flights[static_cast<std::size_t>((state.begun - 1) % most_under_way)].ready =
      state.produced;
  state.work.notify_one();
}

GradientExchange::Outcome GradientExchange::finish() {
  State& state = *state_;
  PACELINE_ASSERT(under_way() > 0, "an iteration is under way");
  Flight& flight = state.flights[static_cast<std::size_t>(state.finished % most_under_way)];
  if (!state.travels) {
    ++state.finished;
    return {.finite = all_finite(flight.gradients), .exposed = {}, .travelled = {}};
  }
  const Clock::time_point before = Clock::now();
  std::unique_lock lock(state.mutex);
  state.someone_waits = true;
  state.progress.wait(lock, [&] {
    return state.failure != nullptr || flight.done == static_cast<int>(state.buckets.size());
  });
  state.someone_waits = false;
  if (state.failure != nullptr) std::rethrow_exception(state.failure);
  ++state.finished;
  const auto seconds = [](Clock::duration d) {
    return Seconds{std::chrono::duration<double>(d).count()};
  };
  return {.finite = flight.finite,
          .exposed = seconds(Clock::now() - before),
          .travelled = seconds(flight.last_end - flight.first_start)};
}

}  // namespace paceline::runtime

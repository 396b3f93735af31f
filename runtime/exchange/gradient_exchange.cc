// Tests: tests/runtime/loop/gradient_exchange_test.cc.
#include "runtime/exchange/gradient_exchange.h"

#include <fmt/core.h>
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
#include "models/base/to_size.h"
#include "runtime/collective/executor.h"
#include "runtime/device/cpu_device.h"
#include "runtime/device/polling.h"

namespace paceline::runtime {
namespace {

using Clock = Recorder::Clock;

constexpr int most_under_way = 2;
// How long the communication thread sleeps between polls while nobody waits for it, because it
// competes with backward for the core: a tenth of the time for which nothing has moved, within
// these bounds.
constexpr std::chrono::microseconds shortest_nap{50};
constexpr std::chrono::microseconds longest_nap{200};

void check(const models::Plan& plan, std::span<const ParameterPlace> parameters, int ranks) {
  if (plan.ranks != ranks)
    throw InputError(fmt::format("a plan for {} ranks, and {} ranks", plan.ranks, ranks),
                     "make the plan for the ranks that run it");
  if (plan.overlap == models::Overlap::priority)
    throw InputError("overlap priority cannot be run, only predicted",
                     "choose wait-free, double-buffered or none");
  const auto* const use = plan.uses<models::ShardUse>();
  if (use != nullptr && (use->kind != models::ShardingKind::zero1 || use->shards != ranks))
    throw InputError(
        fmt::format("{} of {} shards cannot be run, only predicted", name(use->kind), use->shards),
        "choose zero1, or a strategy that is not sharded");
  std::size_t next = 0;
  for (const models::Bucket& bucket : plan.buckets) {
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

// The gradients of one iteration that is under way.
struct Flight {
  ArrayView gradients;
  Memory wire;              // the buckets as they travel, unless that is in place
  std::vector<Token> when;  // the gradients of each bucket are there
  Memory not_finite;        // a number of each stream: 1 once it found one that is not finite
  std::int64_t iteration = 0;
  int ready = 0;    // buckets that may start, though their gradients may still be computed
  int started = 0;  // buckets that have
  int done = 0;     // buckets that are back

  [[nodiscard]] std::span<std::uint32_t> found() const {
    return {reinterpret_cast<std::uint32_t*>(not_finite.data()),
            not_finite.size() / sizeof(std::uint32_t)};
  }
  [[nodiscard]] bool finite() const {
    return std::ranges::all_of(found(), [](std::uint32_t found) { return found == 0; });
  }
  Clock::time_point first_start;
  Clock::time_point last_end;
};

struct BucketPlace {
  std::int64_t offset = 0;  // of its first element in the flat array
  std::int64_t elements = 0;
  int last_parameter = 0;
  int stream = 0;
  Collective collective;
  models::Elements
      own;  // the part whose sum this rank gets: all of the bucket where none is sharded
  Collective gather = {};  // of a sharded plan
};

}  // namespace

struct GradientExchange::State {
  State(CollectiveExecutor& e, Device& d, const models::Plan& plan,
        std::span<const ParameterPlace> parameters, Recorder* r)
      : executor(e),
        device(d),
        wire(plan.wire),
        waits_for_all(plan.overlap == models::Overlap::none),
        travels(e.traits().ranks > 1),
        in_place(wire == NumberType::fp32 && e.traits().takes.contains(d.fastest())),
        is_sharded(plan.uses<models::ShardUse>() != nullptr),
        recorder(r) {
    if (is_sharded && travels && !e.traits().takes.contains(d.fastest()))
      throw InputError(
          fmt::format("{} does not take the memory of {}", e.traits().name, plan.strategy),
          "choose a strategy that is not sharded");
    const auto count = to_size(std::max(1, plan.streams));
    for (std::size_t i = 0; i < count; ++i) streams.push_back(device.make_stream());
    stream_free.resize(count);
    add_buckets(plan, parameters);
    for (Flight& flight : flights) {
      flight.when.resize(buckets.size());
      flight.not_finite = device.allocate(count * sizeof(std::uint32_t), MemoryKind::pinned);
      if (!travels || in_place) continue;
      const ExecutorTraits& traits = executor.traits();
      const MemoryKind kind =
          common_kind(device, traits.takes, fmt::format("executor {}", traits.name));
      flight.wire = device.allocate(to_size(elements) * bytes_of(wire), kind);
    }
  }

  void add_buckets(const models::Plan& plan, std::span<const ParameterPlace> parameters) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < plan.buckets.size(); ++i) {
      const models::Bucket& bucket = plan.buckets[i];
      const std::int64_t offset = next < parameters.size() ? parameters[next].offset : 0;
      next += to_size(bucket.gradient_count);
      const int stream = static_cast<int>(i % streams.size());
      const models::Elements all{offset, bucket.elements};
      const int ranks = executor.traits().ranks;
      const models::PlannedSchedule summing =
          is_sharded ? models::scheduled("reduce-scatter", {.ranks = ranks})
                     : plan.schedules[to_size(bucket.schedule)];
      buckets.push_back(
          {.offset = offset,
           .elements = bucket.elements,
           .last_parameter = static_cast<int>(next) - 1,
           .stream = stream,
           .collective = executor.prepare(summing, bucket.elements, plan.wire, stream),
           .own = is_sharded ? models::part(all, executor.traits().rank, ranks) : all});
      if (is_sharded)
        buckets.back().gather = executor.prepare(models::scheduled("all-gather", {.ranks = ranks}),
                                                 bucket.elements, NumberType::fp32, stream);
      elements += bucket.elements;
    }
  }

  // The bucket as it travels.
  [[nodiscard]] ArrayView travelling(const Flight& flight, const BucketPlace& bucket) const {
    const ArrayView all = in_place ? flight.gradients : flight.wire.array(wire);
    return all.part(to_size(bucket.offset), to_size(bucket.elements));
  }
  static ArrayView values(const Flight& flight, const BucketPlace& bucket) {
    return flight.gradients.part(to_size(bucket.offset), to_size(bucket.elements));
  }
  // The part of the bucket that this rank gets.
  static ArrayView own(const ArrayView& of_all, const BucketPlace& bucket) {
    return of_all.part(to_size(bucket.own.begin), to_size(bucket.own.size));
  }
  [[nodiscard]] Stream& stream_of(const BucketPlace& bucket) const {
    return *streams[to_size(bucket.stream)];
  }
  void record(models::TaskKind kind, const Flight& flight, int bucket, Clock::time_point start,
              Clock::time_point end) const {
    if (recorder != nullptr)
      recorder->record(kind, models::Resource::communication, bucket, flight.iteration, start, end,
                       buckets[to_size(bucket)].stream);
  }

  // A bucket that was started: on its way until `travelled` is done, and then on its way back into
  // the gradients until `landed` is.
  struct InFlight {
    Flight* flight;
    int bucket;
    Clock::time_point start;
    Token travelled;
    bool lands = false;
    Clock::time_point landing_start = {};
    Token landed = {};
  };

  void start(Flight& flight, int index);
  // Casts the bucket back and looks for what is not finite.
  void begin_landing(InFlight& bucket);
  // Whether the bucket is back; goes on with it as far as it can.
  bool lands(InFlight& bucket);
  bool start_ready();
  bool land_done();
  void run();

  CollectiveExecutor& executor;
  Device& device;
  NumberType wire;
  bool waits_for_all = false;
  bool travels = false;
  bool in_place = false;
  bool is_sharded = false;
  Recorder* recorder = nullptr;
  std::vector<BucketPlace> buckets;
  std::int64_t elements = 0;

  // The communication thread's:
  std::deque<InFlight> in_flight;
  std::vector<Clock::time_point> stream_free;  // when a stream's last collective was done

  // Shared, under the mutex. Flights are used in turn: `begun` and `finished` count them.
  std::mutex mutex;
  std::condition_variable work;
  std::condition_variable progress;
  std::array<Flight, most_under_way> flights;
  std::vector<std::unique_ptr<Stream>> streams;  // of the device, one for each stream of the plan
  std::int64_t begun = 0;
  std::int64_t finished = 0;
  int produced = 0;  // buckets complete in the iteration begun last; the computing thread's
  bool someone_waits = false;
  bool stopping = false;
  std::exception_ptr failure;
  std::thread thread;
};

void GradientExchange::State::start(Flight& flight, int index) {
  const BucketPlace& bucket = buckets[to_size(index)];
  Token ready = flight.when[to_size(index)];
  const Clock::time_point before = Clock::now();
  if (!in_place) {
    Stream& stream = stream_of(bucket);
    stream.wait_for(ready);
    stream.start(Cast{values(flight, bucket), travelling(flight, bucket)});
    ready = stream.record();
  }
  const Clock::time_point begin = Clock::now();
  // The time of a cast that runs later is not known here.
  if (!in_place && ready.is_done()) record(models::TaskKind::cast, flight, index, before, begin);
  InFlight& started = in_flight.emplace_back(InFlight{
      &flight, index, begin, executor.start(bucket.collective, travelling(flight, bucket), ready)});
  if (started.travelled.is_done() && lands(started)) in_flight.pop_back();
}

void GradientExchange::State::begin_landing(InFlight& in) {
  const BucketPlace& bucket = buckets[to_size(in.bucket)];
  // On one stream a collective runs after the one before it.
  Clock::time_point& free = stream_free[to_size(bucket.stream)];
  in.landing_start = Clock::now();
  record(is_sharded ? models::TaskKind::reduce_scatter : models::TaskKind::all_reduce, *in.flight,
         in.bucket, std::max(in.start, free), in.landing_start);
  free = in.landing_start;
  Stream& stream = stream_of(bucket);
  const ArrayView gradients = own(in.flight->gradients, bucket);
  std::uint32_t* const found = &in.flight->found()[to_size(bucket.stream)];
  if (in_place)
    stream.start(FindNotFinite{gradients, found});
  else
    stream.start(Unscale{own(in.flight->wire.array(wire), bucket), gradients, 1, found});
  in.landed = stream.record();
  in.lands = true;
}

bool GradientExchange::State::lands(InFlight& in) {
  if (!in.lands) {
    if (!in.travelled.is_done()) return false;
    begin_landing(in);
  }
  if (!in.landed.is_done()) return false;
  const Clock::time_point end = Clock::now();
  record(models::TaskKind::unpack, *in.flight, in.bucket, in.landing_start, end);
  const std::lock_guard lock(mutex);
  ++in.flight->done;
  in.flight->last_end = end;
  progress.notify_all();
  return true;
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
        Flight& candidate = flights[to_size(i % most_under_way)];
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
    const bool landed_before = i->lands;
    const bool is_back = lands(*i);
    any = any || is_back || i->lands != landed_before;
    i = is_back ? in_flight.erase(i) : std::next(i);
  }
  return any;
}

void GradientExchange::State::run() {
  ::prctl(PR_SET_TIMERSLACK, 1000UL);
  ::pthread_setname_np(::pthread_self(), "communication");
  const auto has_ready = [this] {
    for (std::int64_t i = finished; i < begun; ++i) {
      const Flight& flight = flights[to_size(i % most_under_way)];
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

GradientExchange::GradientExchange(CollectiveExecutor& executor, Device& device,
                                   const models::Plan& plan,
                                   std::span<const ParameterPlace> parameters, Recorder* recorder) {
  check(plan, parameters, executor.traits().ranks);
  state_ = std::make_unique<State>(executor, device, plan, parameters, recorder);
  if (state_->travels) state_->thread = std::thread([state = state_.get()] { state->run(); });
}

GradientExchange::GradientExchange(Transport& transport, const models::Plan& plan,
                                   std::span<const ParameterPlace> parameters, Recorder* recorder)
    : GradientExchange(std::make_unique<Executor>(transport), plan, parameters, recorder) {}

GradientExchange::GradientExchange(std::unique_ptr<CollectiveExecutor> executor,
                                   const models::Plan& plan,
                                   std::span<const ParameterPlace> parameters, Recorder* recorder)
    : GradientExchange(*executor, cpu_device(), plan, parameters, recorder) {
  own_executor_ = std::move(executor);
}

GradientExchange::~GradientExchange() {
  if (!state_->thread.joinable()) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->work.notify_all();
  }
  state_->thread.join();
  // Leave the job before the memory of what is in flight is freed: a peer may be copying from it.
  if (!state_->in_flight.empty()) state_->executor.abort();
}

int GradientExchange::under_way() const {
  return static_cast<int>(state_->begun - state_->finished);
}

bool GradientExchange::is_sharded() const {
  return state_->is_sharded;
}

std::vector<models::Elements> GradientExchange::own() const {
  if (!state_->is_sharded) return {{0, state_->elements}};
  std::vector<models::Elements> all;
  for (const BucketPlace& bucket : state_->buckets) all.push_back(bucket.own);
  return all;
}

void GradientExchange::gather(const ArrayView& values, const Token& when) {
  State& state = *state_;
  PACELINE_ASSERT(state.is_sharded && under_way() == 0, "parts are gathered between iterations");
  if (!state.travels) return;
  // The communication thread leaves the executor alone meanwhile.
  std::vector<Token> gathered;
  for (const BucketPlace& bucket : state.buckets)
    gathered.push_back(state.executor.start(
        bucket.gather, values.part(to_size(bucket.offset), to_size(bucket.elements)), when));
  Clock::time_point moved_at = Clock::now();
  while (!std::ranges::all_of(gathered, &Token::is_done)) {
    const Clock::time_point now = Clock::now();
    if (state.executor.progress())
      moved_at = now;
    else
      pause_between_looks(now - moved_at);
  }
}

std::vector<int> GradientExchange::acts_on() const {
  std::vector<int> last;
  for (const BucketPlace& bucket : state_->buckets) last.push_back(bucket.last_parameter);
  const bool at_the_end = state_->waits_for_all || !state_->travels;
  return at_the_end && !last.empty() ? std::vector{last.back()} : last;
}

bool GradientExchange::is_back() const {
  PACELINE_ASSERT(under_way() > 0, "an iteration is under way");
  if (!state_->travels) return true;
  const std::lock_guard lock(state_->mutex);
  const Flight& oldest = state_->flights[to_size(state_->finished % most_under_way)];
  return state_->failure != nullptr || oldest.done == static_cast<int>(state_->buckets.size());
}

void GradientExchange::begin(const ArrayView& gradients, std::int64_t iteration) {
  State& state = *state_;
  PACELINE_ASSERT(under_way() < most_under_way, "at most two iterations are under way");
  PACELINE_ASSERT(static_cast<std::int64_t>(gradients.elements) == state.elements &&
                      gradients.type == NumberType::fp32,
                  "gradients are the whole flat array");
  PACELINE_ASSERT(gradients.kind == state.device.fastest(),
                  "gradients are in the memory that the device is fastest in");
  const std::lock_guard lock(state.mutex);
  Flight& flight = state.flights[to_size(state.begun % most_under_way)];
  flight.gradients = gradients;
  flight.iteration = iteration;
  flight.ready = flight.started = flight.done = 0;
  std::ranges::fill(flight.found(), 0U);
  ++state.begun;
  state.produced = 0;
}

void GradientExchange::ready(int parameter, const Token& when) {
  State& state = *state_;
  const int buckets = static_cast<int>(state.buckets.size());
  const int before = state.produced;
  Flight& flight = state.flights[to_size((state.begun - 1) % most_under_way)];
  while (state.produced < buckets &&
         state.buckets[to_size(state.produced)].last_parameter <= parameter) {
    flight.when[to_size(state.produced)] = when;
    ++state.produced;
  }
  const bool releases =
      state.produced > before && (!state.waits_for_all || state.produced == buckets);
  if (!releases) return;
  const std::lock_guard lock(state.mutex);
  flight.ready = state.produced;
  state.work.notify_one();
}

GradientExchange::Outcome GradientExchange::finish() {
  State& state = *state_;
  PACELINE_ASSERT(under_way() > 0, "an iteration is under way");
  Flight& flight = state.flights[to_size(state.finished % most_under_way)];
  if (!state.travels) {
    ++state.finished;
    Stream& stream = *state.streams.front();
    if (!flight.when.empty()) stream.wait_for(flight.when.back());
    stream.start(FindNotFinite{flight.gradients, flight.found().data()});
    wait_for(stream.record(), device_patience, "look at the gradients");
    return {.finite = flight.finite(), .exposed = {}, .travelled = {}};
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
  return {.finite = flight.finite(),
          .exposed = seconds(Clock::now() - before),
          .travelled = seconds(flight.last_end - flight.first_start)};
}

}  // namespace paceline::runtime

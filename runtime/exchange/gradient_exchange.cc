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
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "runtime/collective/executor.h"
#include "runtime/device/cpu_device.h"
#include "runtime/device/polling.h"
#include "runtime/device/spare_memory.h"
#include "runtime/exchange/bucket_collectives.h"

namespace paceline::runtime {
namespace {

using Clock = Recorder::Clock;

constexpr int most_under_way = 2;
// How long the communication thread sleeps between polls while nobody waits for it, because it
// competes with backward for the core: a tenth of the time for which nothing has moved, within
// these bounds.
constexpr std::chrono::microseconds shortest_nap{50};
constexpr std::chrono::microseconds longest_nap{200};

Seconds seconds(Clock::duration duration) {
  return Seconds{std::chrono::duration<double>(duration).count()};
}

// The gradients of one iteration that is under way.
struct Flight {
  ArrayView gradients;
  Memory wire;  // the buckets as they travel, unless that is in place
  // Memory of the buckets whose gradients are not in the flat array: for the gradients, and for them on the wire.
  std::vector<Memory> places;
  std::vector<Memory> wires;
  std::vector<Token> when;  // the gradients of each bucket are there
  Memory not_finite;        // a number of each stream: 1 once it found one that is not finite
  std::int64_t iteration = 0;
  int asked = 0;  // buckets whose start was asked for, though their gradients may still be computed
  int done = 0;   // buckets that are back
  Seconds waited{0};  // by the computing thread, before it asked for more

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

// The computing thread asks the communication thread to start this. It is the sum of a flight's bucket. Without a flight it
// is a gather of values.
struct Start {
  Flight* flight = nullptr;
  int bucket = 0;
  std::int64_t iteration = 0;
  ArrayView values = {};
  Token when = {};
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
        tensor(plan.layout.tensor),
        ranks(plan.ranks),
        rank(e.traits().rank / tensor),
        tensor_stream(std::max(1, plan.streams)),
        travels(ranks > 1),
        in_place(wire == NumberType::fp32 && e.traits().takes.contains(d.fastest())),
        is_sharded(plan.uses<models::ShardUse>() != nullptr),
        shards(is_sharded ? plan.uses<models::ShardUse>()->shards : 1),
        bounds_gradients(is_sharded &&
                         models::sharding(plan.uses<models::ShardUse>()->kind).sums_in_each_pass()),
        recorder(r) {
    if (is_sharded && travels && !e.traits().takes.contains(d.fastest()))
      throw InputError(
          fmt::format("{} does not take the memory of {}", e.traits().name, plan.strategy),
          "choose a strategy that is not sharded");
    const auto* const use = plan.uses<models::ShardUse>();
    if (use != nullptr && use->kind != models::ShardingKind::zero1 &&
        d.fastest() != MemoryKind::host)
      throw InputError(fmt::format("{} runs on CPUs only yet", plan.strategy),
                       "choose zero1, or leave --device out");
    if (tensor > 1) neighbours_sum = neighbour_sum(plan);
    const auto count = to_size(std::max(1, plan.streams));
    for (std::size_t i = 0; i < count; ++i) streams.push_back(device.make_stream());
    stream_free.resize(count);
    add_buckets(plan, parameters);
    gathering.resize(buckets.size());
    for (Flight& flight : flights) {
      flight.when.resize(buckets.size());
      flight.places.resize(buckets.size());
      flight.wires.resize(buckets.size());
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
      buckets.push_back({.offset = offset,
                         .elements = bucket.elements,
                         .last_parameter = static_cast<int>(next) - 1,
                         .stream = stream,
                         .collective = executor.prepare(bucket_sum(plan, bucket), bucket.elements,
                                                        plan.wire, stream),
                         .own = is_sharded ? models::part(all, rank % shards, shards) : all});
      if (is_sharded)
        buckets.back().gather =
            executor.prepare(bucket_gather(plan), bucket.elements, NumberType::fp32, stream);
      elements += bucket.elements;
    }
  }

  static bool is_placed(const Flight& flight, int bucket) {
    return flight.places[to_size(bucket)].data() != nullptr;
  }
  // The bucket as it travels, and its gradients.
  [[nodiscard]] ArrayView travelling(const Flight& flight, int index) const {
    if (in_place) return values(flight, index);
    if (is_placed(flight, index)) return start_of(flight.wires[to_size(index)], wire, index);
    return in_bucket(flight.wire.array(wire), index);
  }
  [[nodiscard]] ArrayView values(const Flight& flight, int index) const {
    if (is_placed(flight, index))
      return start_of(flight.places[to_size(index)], NumberType::fp32, index);
    return in_bucket(flight.gradients, index);
  }
  [[nodiscard]] ArrayView start_of(const Memory& memory, NumberType type, int index) const {
    return memory.array(type).part(0, to_size(buckets[to_size(index)].elements));
  }
  [[nodiscard]] ArrayView in_bucket(const ArrayView& of_all, int index) const {
    const BucketPlace& bucket = buckets[to_size(index)];
    return of_all.part(to_size(bucket.offset), to_size(bucket.elements));
  }
  // The part that this rank gets, of an array of the bucket.
  static ArrayView own(const ArrayView& of_bucket, const BucketPlace& bucket) {
    return of_bucket.part(to_size(bucket.own.begin - bucket.offset), to_size(bucket.own.size));
  }
  [[nodiscard]] Stream& stream_of(const BucketPlace& bucket) const {
    return *streams[to_size(bucket.stream)];
  }
  void record(models::TaskKind kind, std::int64_t iteration, int bucket, Clock::time_point start,
              Clock::time_point end) const {
    if (recorder != nullptr)
      recorder->record(kind, models::Resource::communication, bucket, iteration, start, end,
                       buckets[to_size(bucket)].stream);
  }

  // A bucket that was started: on its way until `travelled` is done, and then on its way back into
  // the gradients until `landed` is.
  struct InFlight {
    Start what;
    Clock::time_point start;
    Token travelled;
    bool lands = false;
    Clock::time_point landing_start = {};
    Token landed = {};
  };

  void ask(const Start& what);  // with the lock
  void start(const Start& what);
  // Whether what was asked for first may start: its collective runs no more. With the lock.
  [[nodiscard]] bool can_start() const;
  // Casts the bucket back and looks for what is not finite.
  void begin_landing(InFlight& bucket);
  // Says that the bucket's parts are there.
  bool gathered(const InFlight& in);
  // Whether the bucket is back; goes on with it as far as it can.
  bool lands(InFlight& bucket);
  bool start_ready();
  bool land_done();
  // Starts the sum that neighbours wait for, and says that it is there.
  bool start_sum();
  bool land_sum();
  [[nodiscard]] Collective sum_of(const ArrayView& values);
  // The computing thread waits for the communication thread.
  template <class Condition>
  void await(Condition holds) {
    std::unique_lock lock(mutex);
    someone_waits = true;
    work.notify_one();
    progress.wait(lock, [&] { return failure != nullptr || holds(); });
    someone_waits = false;
    if (failure != nullptr) std::rethrow_exception(failure);
  }
  void run();

  CollectiveExecutor& executor;
  Device& device;
  NumberType wire;
  bool waits_for_all = false;
  int tensor = 1;         // neighbours that share the network out
  int ranks = 1;          // of the plan: those with the same part of it
  int rank = 0;           // among these
  int tensor_stream = 0;  // of the executor, behind those of the plan
  models::PlannedSchedule neighbours_sum;
  bool travels = false;
  bool in_place = false;
  bool is_sharded = false;
  int shards = 1;                 // into which groups of as many neighbours split everything
  bool bounds_gradients = false;  // to two buckets at a time
  Recorder* recorder = nullptr;
  std::vector<BucketPlace> buckets;
  std::int64_t elements = 0;

  // The communication thread's:
  std::deque<InFlight> in_flight;
  std::vector<Clock::time_point> stream_free;  // when a stream's last collective was done
  std::map<std::pair<std::size_t, NumberType>, Collective>
      sums;                          // among neighbours, by elements and type
  std::optional<Token> summed = {};  // of the sum under way

  // Shared, under the mutex. Flights are used in turn: `begun` and `finished` count them.
  std::mutex mutex;
  std::condition_variable work;
  std::condition_variable progress;
  std::deque<Start> starts;           // asked for, in order
  std::vector<bool> gathering;        // by bucket
  std::optional<ArrayView> sum = {};  // asked for, and not started yet
  bool is_summing = false;
  SpareMemory spare;  // for the gradients of buckets
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

void GradientExchange::State::ask(const Start& what) {
  starts.push_back(what);
  work.notify_one();
}

void GradientExchange::State::start(const Start& what) {
  const BucketPlace& bucket = buckets[to_size(what.bucket)];
  const Clock::time_point before = Clock::now();
  if (what.flight == nullptr) {
    in_flight.push_back({what, before, executor.start(bucket.gather, what.values, what.when)});
    if (lands(in_flight.back())) in_flight.pop_back();
    return;
  }
  Flight& flight = *what.flight;
  Token ready = what.when;
  if (!in_place && is_placed(flight, what.bucket)) {
    const std::lock_guard lock(mutex);
    flight.wires[to_size(what.bucket)] = spare.take(to_size(bucket.elements) * bytes_of(wire));
  }
  if (!in_place) {
    Stream& stream = stream_of(bucket);
    stream.wait_for(ready);
    stream.start(Cast{values(flight, what.bucket), travelling(flight, what.bucket)});
    ready = stream.record();
  }
  const Clock::time_point begin = Clock::now();
  // The time of a cast that runs later is not known here.
  if (!in_place && ready.is_done())
    record(models::TaskKind::cast, what.iteration, what.bucket, before, begin);
  InFlight& started = in_flight.emplace_back(InFlight{
      what, begin, executor.start(bucket.collective, travelling(flight, what.bucket), ready)});
  if (started.travelled.is_done() && lands(started)) in_flight.pop_back();
}

void GradientExchange::State::begin_landing(InFlight& in) {
  const BucketPlace& bucket = buckets[to_size(in.what.bucket)];
  const Flight& flight = *in.what.flight;
  // On one stream a collective runs after the one before it.
  Clock::time_point& free = stream_free[to_size(bucket.stream)];
  in.landing_start = Clock::now();
  record(is_sharded ? models::TaskKind::reduce_scatter : models::TaskKind::all_reduce,
         in.what.iteration, in.what.bucket, std::max(in.start, free), in.landing_start);
  free = in.landing_start;
  Stream& stream = stream_of(bucket);
  const int index = in.what.bucket;
  const ArrayView gradients = own(in_bucket(flight.gradients, index), bucket);
  std::uint32_t* const found = &flight.found()[to_size(bucket.stream)];
  if (!in_place) {
    stream.start(Unscale{own(travelling(flight, index), bucket), gradients, 1, found});
  } else {
    if (is_placed(flight, index)) stream.start(Cast{own(values(flight, index), bucket), gradients});
    stream.start(FindNotFinite{gradients, found});
  }
  in.landed = stream.record();
  in.lands = true;
}

bool GradientExchange::State::lands(InFlight& in) {
  if (!in.lands) {
    if (!in.travelled.is_done()) return false;
    if (in.what.flight == nullptr) return gathered(in);
    begin_landing(in);
  }
  if (!in.landed.is_done()) return false;
  const Clock::time_point end = Clock::now();
  record(models::TaskKind::unpack, in.what.iteration, in.what.bucket, in.landing_start, end);
  const std::lock_guard lock(mutex);
  for (std::vector<Memory>* const memory : {&in.what.flight->places, &in.what.flight->wires})
    spare.put_back(std::exchange((*memory)[to_size(in.what.bucket)], {}));
  ++in.what.flight->done;
  in.what.flight->last_end = end;
  progress.notify_all();
  return true;
}

bool GradientExchange::State::gathered(const InFlight& in) {
  const Clock::time_point end = Clock::now();
  Clock::time_point& free = stream_free[to_size(buckets[to_size(in.what.bucket)].stream)];
  record(models::TaskKind::all_gather, in.what.iteration, in.what.bucket, std::max(in.start, free),
         end);
  free = end;
  const std::lock_guard lock(mutex);
  gathering[to_size(in.what.bucket)] = false;
  progress.notify_all();
  return true;
}

bool GradientExchange::State::can_start() const {
  if (starts.empty()) return false;
  const Start& first = starts.front();
  return std::ranges::none_of(in_flight, [&](const InFlight& other) {
    return other.what.bucket == first.bucket &&
           (other.what.flight == nullptr) == (first.flight == nullptr);
  });
}

// Starts what was asked for, in order. A collective that still runs since it was asked for last is waited for, and those
// behind it too: all ranks start in one order.
bool GradientExchange::State::start_ready() {
  for (bool any = false;; any = true) {
    Start next;
    {
      const std::lock_guard lock(mutex);
      if (!can_start()) return any;
      next = starts.front();
      starts.pop_front();
      if (next.flight != nullptr && next.bucket == 0) next.flight->first_start = Clock::now();
    }
    start(next);
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

Collective GradientExchange::State::sum_of(const ArrayView& values) {
  const auto [known, is_new] = sums.try_emplace({values.elements, values.type});
  if (is_new)
    known->second = executor.prepare(neighbours_sum, static_cast<std::int64_t>(values.elements),
                                     values.type, tensor_stream);
  return known->second;
}

bool GradientExchange::State::start_sum() {
  ArrayView values;
  {
    const std::lock_guard lock(mutex);
    if (!sum) return false;
    values = *std::exchange(sum, std::nullopt);
  }
  summed = executor.start(sum_of(values), values, Token());
  return true;
}

bool GradientExchange::State::land_sum() {
  if (!summed || !summed->is_done()) return false;
  summed.reset();
  const std::lock_guard lock(mutex);
  is_summing = false;
  progress.notify_all();
  return true;
}

void GradientExchange::State::run() {
  ::prctl(PR_SET_TIMERSLACK, 1000UL);
  ::pthread_setname_np(::pthread_self(), "communication");
  Clock::time_point moved_at = Clock::now();
  try {
    for (;;) {
      bool hurry = false;
      {
        std::unique_lock lock(mutex);
        if (in_flight.empty() && !summed)
          work.wait(lock, [&] { return stopping || !starts.empty() || sum; });
        if (stopping) return;
        hurry = someone_waits;
      }
      bool moved = start_sum();
      moved = start_ready() || moved;
      // Where all that was started has landed, the computing thread may be in the transport's library.
      if (!in_flight.empty() || summed) moved = executor.progress() || moved;
      moved = land_sum() || moved;
      moved = land_done() || moved;
      const Clock::time_point now = Clock::now();
      if (moved) {
        moved_at = now;
        continue;
      }
      const Clock::duration waited = now - moved_at;
      if (hurry) {
        pause_between_looks(waited);
        continue;
      }
      std::unique_lock lock(mutex);
      work.wait_for(lock, std::clamp<Clock::duration>(waited / 10, shortest_nap, longest_nap),
                    [&] { return stopping || someone_waits || can_start(); });
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
  check_runnable(plan, parameters, executor.traits().ranks);
  state_ = std::make_unique<State>(executor, device, plan, parameters, recorder);
  if (executor.traits().ranks > 1)
    state_->thread = std::thread([state = state_.get()] { state->run(); });
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
  if (!state_->in_flight.empty() || state_->summed) state_->executor.abort();
}

int GradientExchange::under_way() const {
  return static_cast<int>(state_->begun - state_->finished);
}

bool GradientExchange::is_sharded() const {
  return state_->is_sharded;
}

int GradientExchange::replicas() const {
  return state_->ranks / state_->shards;
}

std::vector<models::Elements> GradientExchange::own() const {
  if (!state_->is_sharded) return {{0, state_->elements}};
  std::vector<models::Elements> all;
  for (const BucketPlace& bucket : state_->buckets) all.push_back(bucket.own);
  return all;
}

void GradientExchange::start_gather(int bucket, const ArrayView& values, std::int64_t iteration,
                                    const Token& when) {
  State& state = *state_;
  PACELINE_ASSERT(state.is_sharded, "only a sharded plan has parts to gather");
  if (!state.travels) return;
  const std::lock_guard lock(state.mutex);
  PACELINE_ASSERT(!state.gathering[to_size(bucket)], "a bucket is gathered once at a time");
  state.gathering[to_size(bucket)] = true;
  state.ask({nullptr, bucket, iteration, values, when});
}

void GradientExchange::await_gather(int bucket) {
  State& state = *state_;
  state.await([&] { return !state.gathering[to_size(bucket)]; });
}

void GradientExchange::gather(const ArrayView& values, std::int64_t iteration, const Token& when) {
  const int buckets = static_cast<int>(state_->buckets.size());
  for (int bucket = 0; bucket < buckets; ++bucket) {
    const BucketPlace& place = state_->buckets[to_size(bucket)];
    start_gather(bucket, values.part(to_size(place.offset), to_size(place.elements)), iteration,
                 when);
  }
  for (int bucket = 0; bucket < buckets; ++bucket) await_gather(bucket);
}

ArrayView GradientExchange::place(int bucket) {
  State& state = *state_;
  Flight& flight = state.flights[to_size((state.begun - 1) % most_under_way)];
  if (!state.travels) return state.in_bucket(flight.gradients, bucket);
  const std::lock_guard lock(state.mutex);
  Memory& place = flight.places[to_size(bucket)];
  const std::size_t elements = to_size(state.buckets[to_size(bucket)].elements);
  place = state.spare.take(elements * sizeof(float));
  return place.array(NumberType::fp32).part(0, elements);
}

void GradientExchange::sum(const ArrayView& values) {
  State& state = *state_;
  {
    const std::lock_guard lock(state.mutex);
    state.sum = values;
    state.is_summing = true;
    state.work.notify_one();
  }
  state.await([&] { return !state.is_summing; });
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
  flight.asked = flight.done = 0;
  flight.waited = Seconds{0};
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
  if (!state.travels) return;
  if (state.bounds_gradients) {
    const Clock::time_point start = Clock::now();
    state.await([&] { return flight.done >= flight.asked; });
    flight.waited += seconds(Clock::now() - start);
  }
  const std::lock_guard lock(state.mutex);
  for (; flight.asked < state.produced; ++flight.asked)
    state.ask({&flight, flight.asked, flight.iteration, {}, flight.when[to_size(flight.asked)]});
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
  state.await([&] { return flight.done == static_cast<int>(state.buckets.size()); });
  ++state.finished;
  return {.finite = flight.finite(),
          .exposed = flight.waited + seconds(Clock::now() - before),
          .travelled = seconds(flight.last_end - flight.first_start)};
}

}  // namespace paceline::runtime

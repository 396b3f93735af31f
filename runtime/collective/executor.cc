// Tests: tests/runtime/executor_test.cc, tests/runtime/mpi_executor_test.cc.
#include "runtime/collective/executor.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <deque>
#include <span>
#include <vector>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/collective/message_sizes.h"
#include "models/collective/rank_program.h"
#include "runtime/device/cpu_device.h"
#include "runtime/device/polling.h"
#include "runtime/tensor/kernels.h"

namespace paceline::runtime {
namespace {

using models::RankProgram;
using Clock = std::chrono::steady_clock;

// Receives that are posted ahead should still be in the cache when they are added. This is half of
// a level 2 cache of 1 MiB; two messages are posted at least.
constexpr std::size_t window_bytes = std::size_t{1} << 19;

// Scratch that the collectives of a stream take turns in.
class Scratch {
 public:
  // Holds at least this many bytes from now on. What was handed out before stays as it is until
  // release().
  void reserve(Device& device, MemoryKind kind, std::size_t bytes) {
    if (!held_.empty() && bytes <= held_.back().size()) return;
    if (bytes > 0) held_.push_back(device.allocate(bytes, kind));
  }
  void release() {
    if (held_.size() > 1) held_.erase(held_.begin(), held_.end() - 1);
  }
  [[nodiscard]] ArrayView array(NumberType type) const {
    return held_.empty() ? ArrayView{.type = type} : held_.back().array(type);
  }

 private:
  std::vector<Memory> held_;
};

// What the collectives of one stream of the transport share.
struct Lane {
  Scratch scratch;  // where messages land that are added
  Scratch wide;     // sums in FP32
  std::unique_ptr<Stream> stream;
};

// A collective of this rank. Two cursors go over what it receives: `arrived_` counts the messages
// that are here and whose sums were started, `landed_` those whose sums are done. Only what has
// landed is sent on or received over.
class Run {
 public:
  Run(RankProgram program, NumberType type, int stream)
      : program_(std::move(program)),
        type_(type),
        element_(bytes_of(type)),
        room_elements_(whole_lines(to_size(program_.largest_reduction))),
        stream_(stream) {
    receives_.resize(std::bit_ceil(std::size_t{program_.most_posted}));
    sums_.resize(receives_.size());
    sends_.resize(program_.sends.size());
  }

  [[nodiscard]] int stream() const { return stream_; }
  [[nodiscard]] NumberType type() const { return type_; }
  [[nodiscard]] bool in_flight() const { return in_flight_; }
  [[nodiscard]] std::size_t scratch_bytes() const {
    return room_elements_ * element_ * program_.most_posted;
  }
  [[nodiscard]] std::size_t wide_elements() const { return to_size(program_.wide.size); }

  void enqueue(const ArrayView& bucket, const Token& ready) {
    PACELINE_ASSERT(bucket.type == type_ || bucket.elements == 0,
                    "a bucket is an array of the wire type");
    bucket_ = bucket;
    ready_ = ready;
    in_flight_ = true;
    running_ = false;
    ++starts_;
    next = nullptr;
  }
  // Counts how often it was started.
  [[nodiscard]] std::uint32_t starts() const { return starts_; }

  // Goes as far as it can without blocking. Returns whether anything moved.
  bool advance(Transport& transport, Lane& lane) {
    awaited_message_ = {};
    awaited_token_ = {};
    bool moved = false;
    if (!running_) {
      if (!is_done(ready_)) return false;
      begin(lane);
      post_receives(transport);
      issue_sends(transport, program_.sends_at_start);
      moved = true;
    }
    while (landed_ < program_.receives.size()) {
      if (landed_ < arrived_ && is_done(sums_[place(landed_)])) {
        land(transport);
      } else if (arrived_ < program_.receives.size() && has_arrived(transport)) {
        const Token sum = start_sum(lane);
        const bool is_next = landed_ == arrived_;
        const std::size_t receive = arrived_++;
        if (is_next && sum.source() == nullptr)
          land(transport);
        else
          sums_[place(receive)] = sum;
      } else {
        return moved;
      }
      moved = true;
    }
    for (; finished_sends_ < sends_.size(); ++finished_sends_) {
      if (!is_done(transport, sends_[finished_sends_])) return moved;
    }
    in_flight_ = false;
    return true;
  }

  // After advance() has returned unfinished, the run waits for this message, for this token, or for
  // the earlier of the two. Slot 0 stands for no message, and a token that is done for no token.
  [[nodiscard]] Transport::Request awaited_message() const { return awaited_message_; }
  [[nodiscard]] const Token& awaited_token() const { return awaited_token_; }

  Run* next = nullptr;  // in the queue of the stream

 private:
  void begin(const Lane& lane) {
    running_ = true;
    scratch_ = lane.scratch.array(type_);
    wide_ = lane.wide.array(NumberType::fp32);
    posted_ = arrived_ = landed_ = issued_ = 0;
    finished_sends_ = 0;
  }

  // The number of elements that fill whole cache lines and hold at least `elements`.
  [[nodiscard]] std::size_t whole_lines(std::size_t elements) const {
    return (elements * element_ + 63) / 64 * 64 / element_;
  }
  // Where a receive stands in the lists of those that are posted.
  [[nodiscard]] std::size_t place(std::size_t receive) const {
    return receive & (receives_.size() - 1);
  }

  [[nodiscard]] ArrayView at(models::Elements span) const {
    return bucket_.part(to_size(span.begin), to_size(span.size));
  }
  // The scratch in which receive number `receive` lands, from element `first` of its span on.
  [[nodiscard]] ArrayView room(std::size_t receive, std::int64_t first, std::int64_t size) const {
    const std::size_t start = receive % program_.most_posted * room_elements_;
    return scratch_.part(start + to_size(first), to_size(size));
  }

  [[nodiscard]] bool is_done(Transport& transport, Transport::Request& request) {
    if (request.slot == 0) return true;
    if (!transport.test(request)) {
      awaited_message_ = request;
      return false;
    }
    request = {};
    return true;
  }
  [[nodiscard]] bool is_done(Token& token) {
    if (!token.is_done()) {
      awaited_token_ = token;
      return false;
    }
    token = {};
    return true;
  }

  // Whether all sends that read what the receive changes are done.
  [[nodiscard]] bool is_free(Transport& transport, const RankProgram::Receive& receive) {
    for (std::uint32_t i = receive.sends_before.first; i < receive.sends_before.last; ++i) {
      const std::uint32_t send = program_.awaited[i];
      if (send >= issued_ || !is_done(transport, sends_[send])) return false;
    }
    return true;
  }

  // Whether the next message is here and what it changes is free.
  [[nodiscard]] bool has_arrived(Transport& transport) {
    const RankProgram::Receive& receive = program_.receives[arrived_];
    if (arrived_ == posted_) {
      post_receives(transport);
      if (arrived_ == posted_) return false;
    }
    if (!is_done(transport, receives_[place(arrived_)])) return false;
    return !receive.reduce || is_free(transport, receive);
  }

  // The sum of the next message in order is done.
  void land(Transport& transport) {
    const RankProgram::Receive& receive = program_.receives[landed_];
    ++landed_;
    issue_sends(transport, receive.sends_after);
    post_receives(transport);
  }

  // Posts receives of the window: a sum's into scratch, any other in place, once nothing reads or
  // writes there any more.
  void post_receives(Transport& transport) {
    const std::size_t end =
        landed_ < program_.receives.size() ? program_.receives[landed_].posted_with : posted_;
    for (; posted_ < end; ++posted_) {
      const RankProgram::Receive& receive = program_.receives[posted_];
      if (!receive.reduce && (receive.receive_before >= static_cast<std::int64_t>(landed_) ||
                              !is_free(transport, receive))) {
        return;
      }
      const ArrayView target =
          receive.reduce ? room(posted_, 0, receive.span.size) : at(receive.span);
      receives_[place(posted_)] =
          transport.post_receive(stream_, receive.from, {target.data, target.bytes()});
    }
  }

  void issue_sends(Transport& transport, std::size_t end) {
    for (; issued_ < end; ++issued_) {
      const RankProgram::Send& send = program_.sends[issued_];
      const ArrayView source = at(send.span);
      sends_[issued_] = transport.post_send(stream_, send.to, {source.data, source.bytes()});
    }
  }

  // Starts to add the message that arrived. The token is done when the sum is.
  [[nodiscard]] Token start_sum(Lane& lane) {
    const RankProgram::Receive& receive = program_.receives[arrived_];
    if (!receive.reduce) return {};
    if (type_ == NumberType::fp32) {
      lane.stream->start(Add{room(arrived_, 0, receive.span.size), at(receive.span)});
      return lane.stream->record();
    }
    for (std::uint32_t i = receive.pieces.first; i < receive.pieces.last; ++i) {
      const RankProgram::Piece& piece = program_.pieces[i];
      start_sum(piece, room(arrived_, piece.span.begin - receive.span.begin, piece.span.size),
                *lane.stream);
    }
    return lane.stream->record();
  }

  void start_sum(const RankProgram::Piece& piece, const ArrayView& source, Stream& stream) {
    const ArrayView target = at(piece.span);
    if (!piece.sum_is_wide && !piece.stays_wide) return stream.start(Add{source, target});
    const ArrayView sum =
        wide_.part(to_size(piece.span.begin - program_.wide.begin), to_size(piece.span.size));
    if (!piece.sum_is_wide) stream.start(Cast{target, sum});
    stream.start(Add{source, sum});
    if (!piece.stays_wide) stream.start(Cast{sum, target});
  }

  RankProgram program_;
  NumberType type_;
  std::size_t element_;        // bytes
  std::size_t room_elements_;  // from the start of one room of the scratch to that of the next
  int stream_;
  std::vector<Transport::Request> receives_;  // by place(); the size is a power of two
  std::vector<Token> sums_;                   // likewise
  std::vector<Transport::Request> sends_;

  bool in_flight_ = false;
  bool running_ = false;
  std::uint32_t starts_ = 0;
  ArrayView bucket_;
  Token ready_;
  ArrayView scratch_;
  ArrayView wide_;
  std::size_t posted_ = 0;          // receives
  std::size_t arrived_ = 0;         // receives
  std::size_t landed_ = 0;          // receives
  std::size_t issued_ = 0;          // sends
  std::size_t finished_sends_ = 0;  // at the start of the list
  Transport::Request awaited_message_;
  Token awaited_token_;
};

}  // namespace

struct Executor::State final : Token::Source {
  State(Transport& t, Device& d, ExecutorOptions opts)
      : transport(t),
        device(d),
        options(opts),
        kind(common_kind(d, t.traits().takes, fmt::format("transport {}", t.name()))),
        traits{.name = t.name(),
               .rank = t.rank(),
               .ranks = t.ranks(),
               .streams = t.streams(),
               .takes = t.traits().takes},
        lanes(to_size(t.streams())),
        queues(lanes.size()) {
    for (Lane& lane : lanes) lane.stream = device.make_stream();
    awaited_messages.reserve(lanes.size());
    awaited_tokens.reserve(lanes.size());
  }

  // The collectives that are started on a stream, one behind the other.
  struct Queue {
    Run* first = nullptr;  // runs
    Run* last = nullptr;
  };
  // A library's all-reduce has no program.
  struct Prepared {
    Run* run = nullptr;
    std::int64_t elements = 0;
  };

  Transport& transport;
  Device& device;
  ExecutorOptions options;
  MemoryKind kind;  // of scratch: sums are fastest in it among those that can be sent
  ExecutorTraits traits;
  std::deque<Run> runs;
  std::vector<Prepared> prepared;  // by the collective's number
  std::vector<Lane> lanes;
  std::vector<Queue> queues;
  std::vector<Transport::Request> awaited_messages;
  std::vector<Token> awaited_tokens;

  // The largest message of a bucket, in bytes: as asked for, or models::largest_message_bytes().
  [[nodiscard]] std::int64_t message_bytes(const models::Schedule& schedule,
                                           std::int64_t bucket_bytes) const;
  [[nodiscard]] Collective keep(const Prepared& collective) {
    prepared.push_back(collective);
    return {static_cast<std::uint32_t>(prepared.size() - 1)};
  }
  // Throws InputError unless the stream is one of the transport's.
  void check_stream(int stream) const;

  // Runs what is started on the stream, one after the other.
  bool advance(std::size_t stream) {
    Queue& queue = queues[stream];
    bool moved = false;
    while (queue.first != nullptr) {
      Run& current = *queue.first;
      moved |= current.advance(transport, lanes[stream]);
      if (current.in_flight()) {
        if (current.awaited_message().slot != 0)
          awaited_messages.push_back(current.awaited_message());
        if (current.awaited_token().source() != nullptr)
          awaited_tokens.push_back(current.awaited_token());
        return moved;
      }
      queue.first = current.next;
    }
    return moved;
  }

  bool progress() {
    bool moved = false;
    forget_awaited();
    for (std::size_t stream = 0; stream < queues.size(); ++stream) moved |= advance(stream);
    return moved;
  }
  void forget_awaited() {
    awaited_messages.clear();
    awaited_tokens.clear();
  }

  // Returns when something may move. What was awaited is that of the last progress().
  void wait_for_any(Clock::duration waited) {
    PACELINE_ASSERT(!awaited_tokens.empty() || !awaited_messages.empty(),
                    "what does not move waits for a message or a sum");
    if (awaited_tokens.empty()) return transport.wait_any(awaited_messages);
    if (!awaited_messages.empty() || awaited_tokens.size() > 1) return pause_between_looks(waited);
    runtime::wait_for(awaited_tokens.front(), device_patience, "add what was received");
  }

  // A token's point: the collective's number, and how often it had been started.
  [[nodiscard]] static std::uint64_t point_of(std::uint32_t number, std::uint32_t starts) {
    return std::uint64_t{number} << 32 | starts;
  }
  [[nodiscard]] bool has_passed(std::uint64_t point) const {
    const Run& run = *prepared[point >> 32].run;
    return !run.in_flight() || run.starts() != static_cast<std::uint32_t>(point);
  }
  [[nodiscard]] bool is_done(std::uint64_t point) override { return has_passed(point); }
  [[nodiscard]] bool wait(std::uint64_t point, Seconds longest) override {
    const Clock::time_point start = Clock::now();
    Clock::time_point moved_at = start;
    for (;;) {
      if (has_passed(point)) return true;
      const bool moved = progress();
      if (has_passed(point)) return true;
      const Clock::time_point now = Clock::now();
      if (std::chrono::duration<double>(now - start).count() > longest.value()) return false;
      if (moved)
        moved_at = now;
      else
        pause_between_looks(now - moved_at);
    }
  }
};

Executor::Executor(Transport& transport, ExecutorOptions options)
    : Executor(transport, cpu_device(), options) {}

Executor::Executor(Transport& transport, Device& device, ExecutorOptions options)
    : state_(std::make_unique<State>(transport, device, options)) {}

Executor::~Executor() {
  const bool in_flight = std::any_of(state_->queues.begin(), state_->queues.end(),
                                     [](const auto& q) { return q.first != nullptr; });
  if (in_flight) state_->transport.abort();
}

const ExecutorTraits& Executor::traits() const {
  return state_->traits;
}

std::int64_t Executor::State::message_bytes(const models::Schedule& schedule,
                                            std::int64_t bucket_bytes) const {
  if (options.message_bytes > 0) {
    return static_cast<std::int64_t>(
        std::min(options.message_bytes, to_size(models::most_message_bytes)));
  }
  return models::largest_message_bytes(schedule, bucket_bytes, transport.message_sizes());
}

void Executor::State::check_stream(int stream) const {
  if (stream >= 0 && stream < transport.streams()) return;
  throw InputError(fmt::format("stream {} of {}", stream, transport.streams()),
                   fmt::format("give one from 0 to {}", transport.streams() - 1));
}

Collective Executor::prepare(const models::Schedule& schedule, std::int64_t elements,
                             models::WireType wire, int stream) {
  const Transport& transport = state_->transport;
  if (schedule.ranks() != transport.ranks()) {
    throw InputError(fmt::format("a schedule over {} ranks for a job of {}", schedule.ranks(),
                                 transport.ranks()),
                     "give one over as many ranks as there are");
  }
  state_->check_stream(stream);
  const auto element_bytes = static_cast<std::int64_t>(bytes_of(wire));
  const std::int64_t message_elements = std::max<std::int64_t>(
      1, state_->message_bytes(schedule, elements * element_bytes) / element_bytes);
  const std::int64_t ahead_bytes =
      state_->options.ahead_bytes.value_or(transport.message_sizes().ahead_bytes);
  const models::RankProgramOptions cut{
      .message_elements = message_elements,
      .window_elements = static_cast<std::int64_t>(window_bytes) / element_bytes,
      .ahead_elements = ahead_bytes / element_bytes};
  Run& made = state_->runs.emplace_back(compile(schedule, transport.rank(), elements, wire, cut),
                                        wire, stream);
  Lane& lane = state_->lanes[to_size(stream)];
  lane.scratch.reserve(state_->device, state_->kind, made.scratch_bytes());
  lane.wide.reserve(state_->device, state_->device.fastest(), made.wide_elements() * sizeof(float));
  if (state_->queues[to_size(stream)].first == nullptr) {
    lane.scratch.release();
    lane.wide.release();
  }
  return state_->keep({.run = &made, .elements = elements});
}

Collective Executor::prepare(const models::PlannedSchedule& schedule, std::int64_t elements,
                             models::WireType wire, int stream) {
  if (!schedule.library()) return prepare(schedule.schedule(), elements, wire, stream);
  const Transport& transport = state_->transport;
  if (schedule.algorithm != transport.name() || !transport.has_all_reduce())
    throw InputError(
        fmt::format("strategy {} is a library's own all-reduce, which transport {} does not have",
                    schedule.algorithm, transport.name()),
        "choose a strategy with a schedule, such as fused-ring");
  if (wire != models::WireType::fp32)
    throw InputError(fmt::format("{} adds no {}", schedule.algorithm, name(wire)),
                     "choose --wire fp32, or a strategy with a schedule");
  state_->check_stream(stream);
  return state_->keep({.run = nullptr, .elements = elements});
}

Token Executor::start(Collective collective, const ArrayView& bucket, const Token& ready) {
  PACELINE_ASSERT(state_->traits.takes.contains(bucket.kind),
                  "a bucket is in memory that the transport takes");
  const State::Prepared& prepared = state_->prepared[collective.number];
  if (prepared.run == nullptr) {
    wait_for(ready, device_patience, "start an all-reduce");
    state_->transport.all_reduce(host_floats(bucket), state_->traits.ranks);
    return {};
  }
  Run& run = *prepared.run;
  PACELINE_ASSERT(!run.in_flight(), "a collective is started once at a time");
  const auto stream = to_size(run.stream());
  State::Queue& queue = state_->queues[stream];
  run.enqueue(bucket, ready);
  if (queue.first == nullptr) {
    queue.first = queue.last = &run;
    state_->forget_awaited();
    state_->advance(stream);
  } else {
    queue.last->next = &run;
    queue.last = &run;
  }
  if (!run.in_flight()) return {};
  return {*state_, State::point_of(collective.number, run.starts())};
}

Token Executor::start(Collective collective, void* bucket) {
  const State::Prepared& prepared = state_->prepared[collective.number];
  const NumberType type = prepared.run == nullptr ? NumberType::fp32 : prepared.run->type();
  return start(collective,
               ArrayView{static_cast<std::byte*>(bucket), type, to_size(prepared.elements),
                         MemoryKind::host},
               Token());
}

bool Executor::progress() {
  return state_->progress();
}

void Executor::abort() noexcept {
  state_->transport.abort();
}

bool Executor::done(Collective collective) const {
  const Run* run = state_->prepared[collective.number].run;
  return run == nullptr || !run->in_flight();
}

void Executor::wait(Collective collective) {
  Clock::time_point moved_at = Clock::now();
  while (!done(collective)) {
    if (progress())
      moved_at = Clock::now();
    else
      state_->wait_for_any(Clock::now() - moved_at);
  }
}

}  // namespace paceline::runtime

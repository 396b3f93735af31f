// Tests: tests/runtime/executor_test.cc, tests/runtime/mpi_executor_test.cc.
#include "runtime/collective/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <span>
#include <vector>

#include "models/base/error.h"
#include "models/collective/message_sizes.h"
#include "models/collective/rank_program.h"
#include "runtime/tensor/kernels.h"
#include "runtime/transport/message_memory.h"

namespace paceline::runtime {
namespace {

using models::RankProgram;

// Messages are counted in an int by MPI.
constexpr std::size_t most_message_bytes = std::size_t{1} << 30;
// Receives that are posted ahead are read back from the cache when they land: half of a level 2
// cache of 1 MiB, and two messages at least.
constexpr std::size_t window_bytes = std::size_t{1} << 19;

// Scratch that the collectives of a stream take turns in.
class Scratch {
 public:
  // At least so many bytes. What was handed out before stays as it is until release().
  void reserve(std::size_t bytes) {
    if (bytes <= data().size()) return;
    held_.emplace_back(bytes);
  }
  void release() {
    if (held_.size() > 1) held_.erase(held_.begin(), held_.end() - 1);
  }
  [[nodiscard]] std::span<std::byte> data() {
    return held_.empty() ? std::span<std::byte>() : held_.back().bytes();
  }

 private:
  std::vector<MessageMemory> held_;
};

}  // namespace

class Collective {
 public:
  Collective(RankProgram program, NumberType type, int stream)
      : program_(std::move(program)), type_(type), element_(bytes_of(type)), stream_(stream) {
    receives_.resize(program_.most_posted);
    sends_.resize(program_.sends.size());
  }

  [[nodiscard]] int stream() const { return stream_; }
  [[nodiscard]] bool in_flight() const { return in_flight_; }
  [[nodiscard]] std::size_t room_bytes() const {
    return (static_cast<std::size_t>(program_.largest_reduction) * element_ + 63) / 64 * 64;
  }
  [[nodiscard]] std::size_t scratch_bytes() const { return room_bytes() * program_.most_posted; }
  [[nodiscard]] std::size_t wide_elements() const {
    return static_cast<std::size_t>(program_.wide.size);
  }

  void enqueue(void* bucket) {
    bucket_ = static_cast<std::byte*>(bucket);
    in_flight_ = true;
    running_ = false;
    next = nullptr;
  }

  // As far as it goes without blocking. Returns whether anything moved.
  bool advance(Transport& transport, std::byte* scratch, float* wide) {
    bool moved = false;
    if (!running_) {
      begin(scratch, wide);
      post_receives(transport);
      issue_sends(transport, program_.sends_at_start);
      moved = true;
    }
    while (landed_ < program_.receives.size()) {
      const RankProgram::Receive& receive = program_.receives[landed_];
      if (!is_posted_and_done(transport, receive)) return moved;
      land(receive);
      ++landed_;
      moved = true;
      issue_sends(transport, receive.sends_after);
      post_receives(transport);
    }
    for (; finished_sends_ < sends_.size(); ++finished_sends_) {
      if (!is_done(transport, sends_[finished_sends_])) return moved;
    }
    in_flight_ = false;
    return true;
  }

  // The message without which it cannot move, after advance() did not finish it.
  [[nodiscard]] Transport::Request blocked_on() const { return blocked_on_; }

  Collective* next = nullptr;  // in the queue of the stream

 private:
  void begin(std::byte* scratch, float* wide) {
    running_ = true;
    scratch_ = scratch;
    wide_ = wide;
    posted_ = landed_ = issued_ = 0;
    finished_sends_ = 0;
  }

  [[nodiscard]] std::byte* at(std::int64_t element) const {
    return bucket_ + static_cast<std::size_t>(element) * element_;
  }
  [[nodiscard]] std::byte* room(std::size_t receive) const {
    return scratch_ + receive % receives_.size() * room_bytes();
  }

  [[nodiscard]] bool is_done(Transport& transport, Transport::Request& request) {
    if (request.slot == 0) return true;
    if (!transport.test(request)) {
      blocked_on_ = request;
      return false;
    }
    request = {};
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

  [[nodiscard]] bool is_posted_and_done(Transport& transport, const RankProgram::Receive& receive) {
    if (landed_ == posted_) {
      post_receives(transport);
      if (landed_ == posted_) return false;
    }
    if (!is_done(transport, receives_[landed_ % receives_.size()])) return false;
    return !receive.reduce || is_free(transport, receive);
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
      std::byte* target = receive.reduce ? room(posted_) : at(receive.span.begin);
      receives_[posted_ % receives_.size()] = transport.post_receive(
          stream_, receive.from, {target, static_cast<std::size_t>(receive.span.size) * element_});
    }
  }

  void issue_sends(Transport& transport, std::size_t end) {
    for (; issued_ < end; ++issued_) {
      const RankProgram::Send& send = program_.sends[issued_];
      sends_[issued_] = transport.post_send(
          stream_, send.to,
          {at(send.span.begin), static_cast<std::size_t>(send.span.size) * element_});
    }
  }

  void land(const RankProgram::Receive& receive) {
    if (!receive.reduce) return;
    const std::byte* source = room(landed_);
    if (type_ == NumberType::fp32) {
      add(type_, at(receive.span.begin), source, static_cast<std::size_t>(receive.span.size));
      return;
    }
    for (std::uint32_t i = receive.pieces.first; i < receive.pieces.last; ++i) {
      const RankProgram::Piece& piece = program_.pieces[i];
      land(piece,
           source + static_cast<std::size_t>(piece.span.begin - receive.span.begin) * element_);
    }
  }

  void land(const RankProgram::Piece& piece, const std::byte* source) {
    const auto size = static_cast<std::size_t>(piece.span.size);
    std::byte* target = at(piece.span.begin);
    if (!piece.sum_is_wide && !piece.stays_wide) {
      add(type_, target, source, size);
      return;
    }
    const std::span<float> sum(wide_ + (piece.span.begin - program_.wide.begin), size);
    if (!piece.sum_is_wide) cast_to_fp32(target, type_, sum);
    add_to_fp32(sum, source, type_);
    if (!piece.stays_wide) cast_from_fp32(sum, type_, target);
  }

  RankProgram program_;
  NumberType type_;
  std::size_t element_;
  int stream_;
  std::vector<Transport::Request> receives_;  // of receive i at i modulo the size
  std::vector<Transport::Request> sends_;

  bool in_flight_ = false;
  bool running_ = false;
  std::byte* bucket_ = nullptr;
  std::byte* scratch_ = nullptr;
  float* wide_ = nullptr;
  std::size_t posted_ = 0;          // receives
  std::size_t landed_ = 0;          // receives
  std::size_t issued_ = 0;          // sends
  std::size_t finished_sends_ = 0;  // at the start of the list
  Transport::Request blocked_on_;
};

struct Executor::State {
  struct Stream {
    Collective* first = nullptr;  // the one that runs
    Collective* last = nullptr;
    Scratch scratch;
    Scratch wide;
  };

  Transport& transport;
  ExecutorOptions options;
  std::deque<Collective> collectives;
  std::vector<Stream> streams;
  std::vector<Transport::Request> blocked;

  // The largest message of a bucket, in bytes: as asked for, or models::largest_message_bytes().
  [[nodiscard]] std::size_t message_bytes(std::size_t bucket_bytes) const;

  // Runs what is started on the stream, one after the other.
  bool advance(Stream& stream) {
    bool moved = false;
    while (stream.first != nullptr) {
      Collective& current = *stream.first;
      moved |= current.advance(transport, stream.scratch.data().data(),
                               reinterpret_cast<float*>(stream.wide.data().data()));
      if (current.in_flight()) {
        blocked.push_back(current.blocked_on());
        return moved;
      }
      stream.first = current.next;
    }
    return moved;
  }
};

Executor::Executor(Transport& transport, ExecutorOptions options)
    : state_(new State{transport, options, {}, {}, {}}) {
  state_->streams.resize(static_cast<std::size_t>(transport.streams()));
  state_->blocked.reserve(state_->streams.size());
}

Executor::~Executor() {
  const bool in_flight = std::any_of(state_->streams.begin(), state_->streams.end(),
                                     [](const auto& s) { return s.first != nullptr; });
  if (in_flight) state_->transport.abort();
}

std::size_t Executor::State::message_bytes(std::size_t bucket_bytes) const {
  if (options.message_bytes > 0) return std::min(options.message_bytes, most_message_bytes);
  return static_cast<std::size_t>(models::largest_message_bytes(
      static_cast<std::int64_t>(bucket_bytes), transport.ranks(), transport.message_sizes()));
}

Collective& Executor::prepare(const models::Schedule& schedule, std::int64_t elements,
                              models::WireType wire, int stream) {
  const Transport& transport = state_->transport;
  if (schedule.ranks() != transport.ranks()) {
    throw InputError(fmt::format("a schedule over {} ranks for a job of {}", schedule.ranks(),
                                 transport.ranks()),
                     "give one over as many ranks as there are");
  }
  if (stream < 0 || stream >= transport.streams()) {
    throw InputError(fmt::format("stream {} of {}", stream, transport.streams()),
                     fmt::format("give one from 0 to {}", transport.streams() - 1));
  }
  const std::size_t message_bytes =
      state_->message_bytes(static_cast<std::size_t>(elements) * bytes_of(wire));
  const auto message_elements =
      static_cast<std::int64_t>(std::max<std::size_t>(1, message_bytes / bytes_of(wire)));
  const std::int64_t ahead_bytes =
      state_->options.ahead_bytes.value_or(transport.message_sizes().ahead_bytes);
  const models::RankProgramOptions cut{
      .message_elements = message_elements,
      .window_elements = static_cast<std::int64_t>(window_bytes / bytes_of(wire)),
      .ahead_elements = ahead_bytes / static_cast<std::int64_t>(bytes_of(wire))};
  Collective& made = state_->collectives.emplace_back(
      compile(schedule, transport.rank(), elements, wire, cut), wire, stream);
  State::Stream& own = state_->streams[static_cast<std::size_t>(stream)];
  own.scratch.reserve(made.scratch_bytes());
  own.wide.reserve(made.wide_elements() * sizeof(float));
  if (own.first == nullptr) {
    own.scratch.release();
    own.wide.release();
  }
  return made;
}

void Executor::start(Collective& collective, void* bucket) {
  PACELINE_ASSERT(!collective.in_flight(), "a collective is started once at a time");
  State::Stream& stream = state_->streams[static_cast<std::size_t>(collective.stream())];
  collective.enqueue(bucket);
  if (stream.first == nullptr) {
    stream.first = stream.last = &collective;
    state_->blocked.clear();
    state_->advance(stream);
  } else {
    stream.last->next = &collective;
    stream.last = &collective;
  }
}

bool Executor::progress() {
  bool moved = false;
  state_->blocked.clear();
  for (State::Stream& stream : state_->streams) moved |= state_->advance(stream);
  return moved;
}

bool Executor::done(const Collective& collective) const {
  return !collective.in_flight();
}

void Executor::wait(Collective& collective) {
  while (!done(collective)) {
    if (!progress()) state_->transport.wait_any(state_->blocked);
  }
}

}  // namespace paceline::runtime

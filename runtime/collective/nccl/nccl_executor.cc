// Tests: tests/cuda/nccl/nccl_executor_test.cc.
#include "runtime/collective/nccl/nccl_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/collective/message_sizes.h"
#include "runtime/collective/nccl/communicator.h"
#include "runtime/collective/stream_program.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/device/polling.h"
#include "runtime/transport/lost_rank.h"

namespace paceline::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using cuda::CudaStream;
using nccl::Communicator;

constexpr models::MessageSizes message_sizes{.smallest_bytes = std::int64_t{512} << 10,
                                             .largest_bytes = std::int64_t{4} << 20};
constexpr std::string_view operation = "all-reduce";

ncclDataType_t nccl_type(NumberType type) {
  switch (type) {
    case NumberType::fp16:
      return ncclFloat16;
    case NumberType::bf16:
      return ncclBfloat16;
    case NumberType::fp32:
      break;
  }
  return ncclFloat32;
}

std::unique_ptr<CudaStream> make_stream(CudaDevice& device) {
  std::unique_ptr<Stream> stream = device.make_stream();
  auto* const made = dynamic_cast<CudaStream*>(stream.get());
  PACELINE_ASSERT(made != nullptr, "streams of a CudaDevice are CudaStreams");
  static_cast<void>(stream.release());
  return std::unique_ptr<CudaStream>(made);
}

// Memory that the collectives of a lane take turns in. What was handed out before stays.
class Scratch {
 public:
  void reserve(Device& device, std::size_t bytes) {
    if (bytes > (held_.empty() ? 0 : held_.back().size()))
      held_.push_back(device.allocate(bytes, MemoryKind::device));
  }
  // Nothing is in flight: what was replaced by something larger can go.
  void release() {
    if (held_.size() > 1) held_.erase(held_.begin(), held_.end() - 1);
  }
  [[nodiscard]] ArrayView array(NumberType type) const {
    return held_.empty() ? ArrayView{.type = type, .kind = MemoryKind::device}
                         : held_.back().array(type);
  }

 private:
  std::vector<Memory> held_;
};

// A stream of the executor.
struct Lane {
  Scratch scratch;
  Scratch wide;                           // sums in FP32
  Memory greeting;                        // while ranks are connected; stays if that fails
  std::unique_ptr<CudaStream> transfers;  // destroyed before the memory that they work on
  std::unique_ptr<CudaStream> sums;
  Communicator* communicator = nullptr;
  std::set<int> connected;
  std::vector<Token> events;
  Token last;  // of the collective that was started last
  // When the lane began to work, or when a collective of it was last found to be done.
  Clock::time_point moved_at;
};

struct Prepared {
  std::optional<StreamProgram> program;  // none for NCCL's own all-reduce
  NumberType type = NumberType::fp32;
  std::size_t lane = 0;
};

// A token's point: the lane, and the point of its stream of transfers.
constexpr int lane_shift = 48;
constexpr std::uint64_t stream_point = (std::uint64_t{1} << lane_shift) - 1;

}  // namespace

struct NcclExecutor::State final : cuda::CudaTokenSource {
  State(Channel& c, CudaDevice& d, const NcclOptions& o)
      : channel(c),
        device(d),
        options(o),
        traits{.name = "nccl",
               .rank = channel.rank(),
               .ranks = channel.ranks(),
               .streams = o.streams,
               .takes = {MemoryKind::device}},
        lanes(to_size(o.streams)) {
    for (Lane& lane : lanes) {
      lane.transfers = make_stream(device);
      lane.sums = make_stream(device);
    }
    std::vector<ncclUniqueId> ids;
    for (std::size_t i = 0; i < lanes.size(); ++i) ids.push_back(nccl::draw_unique_id(channel));
    try {
      for (std::size_t i = 0; i < lanes.size(); ++i) {
        communicators.push_back(std::make_unique<Communicator>(ids[i], traits.rank, traits.ranks,
                                                               device.index(), options.patience));
        lanes[i].communicator = communicators.back().get();
      }
    } catch (...) {
      nccl::abort_all(communicators);
      throw;
    }
  }
  ~State() override {
    if (is_in_flight()) nccl::abort_all(communicators);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[nodiscard]] bool is_in_flight() const noexcept {
    try {
      return std::any_of(lanes.begin(), lanes.end(),
                         [](const Lane& lane) { return !lane.last.is_done(); });
    } catch (...) {
      return true;  // of a device that failed nobody knows what it still does
    }
  }

  // Runs `work`. Whatever it throws aborts the communicators, and is thrown by every later call, too.
  template <class Work>
  auto guarded(Work&& work) {
    if (failure) std::rethrow_exception(failure);
    try {
      return work();
    } catch (const LostRank&) {
      failure = std::current_exception();
    } catch (const RunError& error) {
      const std::string& who = communicators.front()->who();
      const std::string text = error.what();
      failure = text.find(who) != std::string::npos
                    ? std::current_exception()
                    : std::make_exception_ptr(RunError(fmt::format("{} {}", operation, who), text));
    } catch (...) {
      failure = std::current_exception();
    }
    nccl::abort_all(communicators);
    std::rethrow_exception(failure);
  }

  void exchange(const Lane& lane, const StreamArrays& arrays, NumberType type,
                const StreamProgram::Exchange& exchange) const {
    const Communicator& communicator = *lane.communicator;
    const cudaStream_t stream = lane.transfers->handle();
    nccl::Group group(communicator);
    for (const StreamProgram::Message& m : exchange.sends) {
      const ArrayView view = arrays.at(m.place);
      communicator.check(ncclSend(view.data, view.elements, nccl_type(type), m.peer,
                                  communicator.handle(), stream),
                         operation);
    }
    for (const StreamProgram::Message& m : exchange.receives) {
      const ArrayView view = arrays.at(m.place);
      communicator.check(ncclRecv(view.data, view.elements, nccl_type(type), m.peer,
                                  communicator.handle(), stream),
                         operation);
    }
    group.end(operation);
  }

  void all_reduce(const Lane& lane, const ArrayView& bucket) const {
    const Communicator& communicator = *lane.communicator;
    nccl::Group group(communicator);
    communicator.check(
        ncclAllReduce(bucket.data, bucket.data, bucket.elements, nccl_type(bucket.type), ncclSum,
                      communicator.handle(), lane.transfers->handle()),
        operation);
    group.end(operation);
  }

  // Lets NCCL connect this rank with those of them that it is not connected with yet.
  void connect(Lane& lane, const std::vector<int>& peers) {
    std::vector<int> missing;
    for (const int peer : peers) {
      if (lane.connected.insert(peer).second) missing.push_back(peer);
    }
    if (missing.empty()) return;
    lane.greeting = device.allocate(8 * missing.size(), MemoryKind::device);
    const StreamArrays arrays{
        .bucket = lane.greeting.array(NumberType::fp32), .scratch = {}, .wide = {}};
    StreamProgram::Exchange greeting;
    for (std::size_t i = 0; i < missing.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const auto count = static_cast<std::int64_t>(missing.size());
      greeting.sends.push_back({missing[i], {StreamProgram::Array::bucket, {at, 1}}});
      greeting.receives.push_back({missing[i], {StreamProgram::Array::bucket, {count + at, 1}}});
    }
    lane.sums->start(Fill{arrays.bucket, 0});
    lane.transfers->wait_for(lane.sums->record());
    exchange(lane, arrays, NumberType::fp32, greeting);
    finish(lane);
  }
  void connect_all_reduce(Lane& lane, NumberType type) {
    lane.greeting = device.allocate(sizeof(float), MemoryKind::device);
    const ArrayView zero = lane.greeting.array(NumberType::fp32);
    lane.sums->start(Fill{zero, 0});
    lane.transfers->wait_for(lane.sums->record());
    all_reduce(lane, {zero.data, type, 1, MemoryKind::device});
    finish(lane);
  }
  // Waits for what is in the lane, and gives the memory of the greeting back.
  void finish(Lane& lane) {
    track(lane, lane.transfers->record());
    const Clock::time_point start = Clock::now();
    while (!look(lane, lane.last)) pause_between_looks(Clock::now() - start);
    lane.greeting = {};
  }

  // The lane's last token is this from now on.
  static void track(Lane& lane, const Token& token) {
    lane.moved_at = Clock::now();
    lane.last = token;
  }

  // Whether the token of the lane's transfers is done. Throws if NCCL has an error, or nothing was
  // done for too long.
  [[nodiscard]] bool look(Lane& lane, const Token& token) {
    if (token.is_done()) {
      lane.moved_at = Clock::now();
      return true;
    }
    lane.communicator->check_for_errors(operation);
    if (const int peer = channel.lost_peer(); peer >= 0)
      throw LostRank(fmt::format("{} {}", operation, lane.communicator->who()),
                     fmt::format("rank {} is gone", peer));
    const std::chrono::duration<double> waited = Clock::now() - lane.moved_at;
    if (waited.count() > options.patience.value())
      throw LostRank(fmt::format("{} {}", operation, lane.communicator->who()),
                     fmt::format("nothing was done for {:g} s", options.patience.value()));
    return false;
  }

  [[nodiscard]] Lane& lane_of(std::uint64_t point) { return lanes[point >> lane_shift]; }

  [[nodiscard]] bool is_done(std::uint64_t point) override {
    return guarded([&] {
      Lane& lane = lane_of(point);
      return look(lane, Token(*lane.transfers, point & stream_point));
    });
  }
  [[nodiscard]] bool wait(std::uint64_t point, Seconds longest) override {
    const Clock::time_point start = Clock::now();
    for (;;) {
      if (is_done(point)) return true;
      const Clock::duration waited = Clock::now() - start;
      if (std::chrono::duration<double>(waited).count() > longest.value()) return false;
      pause_between_looks(waited);
    }
  }
  [[nodiscard]] int device_index() const override { return device.index(); }
  void make_wait(cudaStream_t stream, std::uint64_t point) override {
    if (failure) std::rethrow_exception(failure);
    lane_of(point).transfers->make_wait(stream, point & stream_point);
  }

  void check_stream(int stream) const {
    if (stream >= 0 && stream < traits.streams) return;
    throw InputError(fmt::format("stream {} of {}", stream, traits.streams),
                     fmt::format("give one from 0 to {}", traits.streams - 1));
  }

  [[nodiscard]] Collective keep(Prepared made) {
    prepared.push_back(std::move(made));
    return {static_cast<std::uint32_t>(prepared.size() - 1)};
  }

  Channel& channel;
  CudaDevice& device;
  NcclOptions options;
  ExecutorTraits traits;
  std::vector<Lane> lanes;
  std::vector<std::unique_ptr<Communicator>> communicators;  // of the lanes
  std::vector<Prepared> prepared;                            // by the collective's number
  std::exception_ptr failure;
};

NcclExecutor::NcclExecutor(Channel& channel, CudaDevice& device, NcclOptions options) {
  PACELINE_ASSERT(options.streams >= 1, "an executor has a stream");
  state_ = std::make_unique<State>(channel, device, options);
}

NcclExecutor::~NcclExecutor() = default;

const ExecutorTraits& NcclExecutor::traits() const {
  return state_->traits;
}

Collective NcclExecutor::prepare(const models::Schedule& schedule, std::int64_t elements,
                                 models::WireType wire, int stream) {
  const ExecutorTraits& traits = state_->traits;
  if (schedule.ranks() != traits.ranks) {
    throw InputError(
        fmt::format("a schedule over {} ranks for a job of {}", schedule.ranks(), traits.ranks),
        "give one over as many ranks as there are");
  }
  state_->check_stream(stream);
  const auto bytes = static_cast<std::int64_t>(bytes_of(wire));
  const std::int64_t message_bytes =
      state_->options.message_bytes > 0
          ? static_cast<std::int64_t>(state_->options.message_bytes)
          : models::largest_message_bytes(schedule, elements * bytes, message_sizes);
  StreamProgram program = compile_for_streams(schedule, traits.rank, elements, wire,
                                              std::max<std::int64_t>(1, message_bytes / bytes));
  return state_->guarded([&] {
    Lane& lane = state_->lanes[to_size(stream)];
    lane.scratch.reserve(state_->device, to_size(program.scratch_elements * bytes));
    lane.wide.reserve(state_->device, to_size(program.wide_elements) * sizeof(float));
    if (lane.last.is_done()) {
      lane.scratch.release();
      lane.wide.release();
    }
    lane.events.resize(std::max(lane.events.size(), to_size(program.events)));
    state_->connect(lane, peers(program));
    return state_->keep({std::move(program), wire, to_size(stream)});
  });
}

Collective NcclExecutor::prepare(const models::PlannedSchedule& schedule, std::int64_t elements,
                                 models::WireType wire, int stream) {
  if (!schedule.library()) return prepare(schedule.schedule(), elements, wire, stream);
  if (*schedule.library() != models::Library::nccl)
    throw InputError(
        fmt::format("strategy {} is a library's own all-reduce, which executor nccl does not have",
                    schedule.algorithm),
        "choose a strategy with a schedule, such as fused-ring");
  state_->check_stream(stream);
  return state_->guarded([&] {
    state_->connect_all_reduce(state_->lanes[to_size(stream)], wire);
    return state_->keep({std::nullopt, wire, to_size(stream)});
  });
}

Token NcclExecutor::start(Collective collective, const ArrayView& bucket, const Token& ready) {
  PACELINE_ASSERT(bucket.elements == 0 || state_->traits.takes.contains(bucket.kind),
                  "a bucket is in the GPU's memory");
  return state_->guarded([&]() -> Token {
    const Prepared& prepared = state_->prepared[collective.number];
    PACELINE_ASSERT(bucket.elements == 0 || bucket.type == prepared.type,
                    "a bucket is an array of the wire type");
    Lane& lane = state_->lanes[prepared.lane];
    if (prepared.program) {
      const StreamArrays arrays{.bucket = bucket,
                                .scratch = lane.scratch.array(prepared.type),
                                .wide = lane.wide.array(NumberType::fp32)};
      lane.events.front() = ready;
      issue(*prepared.program, arrays, {*lane.transfers, *lane.sums}, lane.events,
            [&](const StreamProgram::Exchange& exchange) {
              state_->exchange(lane, arrays, prepared.type, exchange);
            });
    } else {
      lane.transfers->wait_for(ready);
      if (bucket.elements > 0) state_->all_reduce(lane, bucket);
    }
    const Token done = lane.transfers->record();
    State::track(lane, done);
    if (done.source() == nullptr) return {};
    return {*state_, prepared.lane << lane_shift | done.point()};
  });
}

bool NcclExecutor::progress() {
  state_->guarded([&] {
    for (Lane& lane : state_->lanes) {
      if (lane.last.source() == nullptr) continue;
      if (state_->look(lane, lane.last)) lane.last = {};
    }
  });
  return false;
}

void NcclExecutor::abort() noexcept {
  if (!state_->failure)
    state_->failure = std::make_exception_ptr(RunError(
        fmt::format("{} {}", operation, state_->communicators.front()->who()), "it was aborted"));
  nccl::abort_all(state_->communicators);
}

}  // namespace paceline::runtime

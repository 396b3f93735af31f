// Tests: tests/runtime/thread_transport_test.cc.
//
// IMPLEMENTATION. Each (stream, sender, receiver) has a lane: a queue of messages of which one end
// was posted. It holds sends or receives, never both, because a post that finds its other end takes
// it out. What a post takes out belongs to the poster until it marks it done; `copies` of the rank
// that owns it counts such messages, and a rank that leaves waits for that count to be 0.
#include "runtime/transport/thread_transport.h"

#include <fmt/core.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <ctime>
#include <mutex>
#include <thread>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "runtime/transport/patience.h"

namespace paceline::runtime {
namespace {

// How often a rank looks for its message with a pause in between before it gives up the core. A look
// and a pause take 30 ns on the lab machine (November 2026), so 1,000 take 30 us, a little more than
// a sleep and a wake-up cost. With more ranks than cores, spinning keeps the peer from its work.
constexpr int spins_alone = 1000;
constexpr int spins_shared = 20;
constexpr int yields = 20;
constexpr long sleep_ns = 50'000'000;  // the longest sleep, after which patience is looked at

struct Slot {
  std::atomic<bool> done = false;
  bool sends = false;
  int peer = 0;
  std::byte* memory = nullptr;
  std::size_t size = 0;
  Slot* next = nullptr;
  std::uint32_t number = 0;
  Patience::Mark mark = {};
};

struct alignas(64) Lane {
  std::mutex mutex;
  Slot* first = nullptr;
  Slot* last = nullptr;

  void push(Slot* slot) {
    slot->next = nullptr;
    (first == nullptr ? first : last->next) = slot;
    last = slot;
  }
  Slot* pop() {
    Slot* slot = first;
    first = slot->next;
    return slot;
  }
};

// What peers know about a rank.
struct alignas(64) RankState {
  std::atomic<std::uint32_t> events = 0;  // counts its messages that peers have done; a futex
  std::atomic<bool> sleeps = false;
  std::atomic<int> copies = 0;  // its messages that peers copy at this moment
  std::atomic<bool> gone = false;
};

struct Group {
  Group(int rank_count, int stream_count)
      : ranks(rank_count),
        streams(stream_count),
        states(to_size(rank_count)),
        lanes(to_size(stream_count) * states.size() * states.size()) {}

  [[nodiscard]] Lane& lane(int stream, int from, int to) {
    return lanes[(to_size(stream) * states.size() + to_size(from)) * states.size() + to_size(to)];
  }
  [[nodiscard]] RankState& state(int rank) { return states[to_size(rank)]; }

  int ranks;
  int streams;
  std::vector<RankState> states;
  std::vector<Lane> lanes;
};

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

void wake(RankState& state) {
  state.events.fetch_add(1);
  if (state.sleeps.load())
    syscall(SYS_futex, &state.events, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void sleep_while(RankState& state, std::uint32_t events) {
  const timespec longest{.tv_sec = 0, .tv_nsec = sleep_ns};
  syscall(SYS_futex, &state.events, FUTEX_WAIT_PRIVATE, events, &longest, nullptr, 0);
}

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Group> group, int rank, Seconds patience)
      : group_(std::move(group)),
        traits_{.name = "threads",
                .rank = rank,
                .ranks = group_->ranks,
                .streams = group_->streams,
                .message_sizes = {.smallest_bytes = 1 << 18, .largest_bytes = 1 << 18}},
        spins_(static_cast<unsigned>(group_->ranks) <= std::thread::hardware_concurrency()
                   ? spins_alone
                   : spins_shared),
        patience_(patience, group_->ranks) {}
  ~ThreadTransport() override { abort(); }

  [[nodiscard]] const TransportTraits& traits() const override { return traits_; }

  [[nodiscard]] Request post_send(int stream, int to, std::span<const std::byte> message) override {
    // The memory of a send is only read.
    return post(group_->lane(stream, traits_.rank, to), to, true,
                {const_cast<std::byte*>(message.data()), message.size()});
  }
  [[nodiscard]] Request post_receive(int stream, int from, std::span<std::byte> room) override {
    return post(group_->lane(stream, from, traits_.rank), from, false, room);
  }

  [[nodiscard]] bool test(Request request) override {
    if (request.slot == 0) return true;
    Slot& message = slot(request);
    if (!is_done(message)) {
      patience_.missed(message.peer, message.sends, message.mark);
      return false;
    }
    patience_.heard(message.peer);
    free_.push(&message);
    return true;
  }

  void wait_any(std::span<const Request> requests) override {
    for (int spin = 0; spin < spins_; ++spin) {
      if (any_done(requests)) return;
      pause_briefly();
    }
    for (int yield = 0; yield < yields; ++yield) {
      if (any_done(requests)) return;
      sched_yield();
    }
    RankState& own = group_->state(traits_.rank);
    own.sleeps.store(true);
    const Awake awake{own};
    for (;;) {
      const std::uint32_t events = own.events.load();
      if (any_done(requests)) return;
      sleep_while(own, events);
      for (const Request request : requests) {
        Slot& message = slot(request);
        if (!is_done(message)) patience_.expect(message.peer, message.sends, message.mark);
      }
    }
  }

  [[nodiscard]] int lost_peer() const override {
    for (int peer = 0; peer < group_->ranks; ++peer)
      if (peer != traits_.rank && group_->state(peer).gone.load()) return peer;
    return -1;
  }

  void abort() noexcept override {
    RankState& own = group_->state(traits_.rank);
    if (own.gone.exchange(true)) return;
    for (int stream = 0; stream < group_->streams; ++stream) {
      for (int peer = 0; peer < group_->ranks; ++peer) {
        withdraw(group_->lane(stream, traits_.rank, peer), true);
        withdraw(group_->lane(stream, peer, traits_.rank), false);
      }
    }
    while (own.copies.load() != 0) sched_yield();
    for (RankState& state : group_->states) wake(state);
  }

 private:
  struct Awake {
    RankState& state;
    ~Awake() { state.sleeps.store(false); }
  };

  [[nodiscard]] Slot& slot(Request request) {
    return (*blocks_[request.slot / block_size])[request.slot % block_size];
  }

  // Throws if the peer is gone and did not do its part before.
  [[nodiscard]] bool is_done(Slot& message) {
    if (message.done.load(std::memory_order_acquire)) return true;
    if (!group_->state(message.peer).gone.load()) return false;
    if (message.done.load(std::memory_order_acquire)) return true;
    throw_lost(message.peer, message.sends, "it is gone");
  }

  [[nodiscard]] bool any_done(std::span<const Request> requests) {
    return std::any_of(requests.begin(), requests.end(), [this](Request request) {
      return request.slot == 0 || is_done(slot(request));
    });
  }

  [[nodiscard]] Request post(Lane& lane, int peer, bool sends, std::span<std::byte> memory) {
    RankState& state = group_->state(peer);
    Slot* other = nullptr;
    {
      const std::lock_guard lock(lane.mutex);
      if (state.gone.load()) throw_lost(peer, sends, "it is gone");
      if (lane.first == nullptr || lane.first->sends == sends) {
        Slot* own = new_slot();
        own->done.store(false, std::memory_order_relaxed);
        own->sends = sends;
        own->peer = peer;
        own->memory = memory.data();
        own->size = memory.size();
        own->mark = {};
        lane.push(own);
        return {own->number};
      }
      other = lane.pop();
      state.copies.fetch_add(1);
    }
    const std::size_t size = other->size;
    if (size == memory.size() && size > 0) {
      if (sends)
        std::memcpy(other->memory, memory.data(), size);
      else
        std::memcpy(memory.data(), other->memory, size);
    }
    if (size == memory.size()) other->done.store(true, std::memory_order_release);
    state.copies.fetch_sub(1);
    wake(state);
    if (size != memory.size()) {
      throw_lost(peer, sends,
                 fmt::format("{} bytes were sent where {} are received",
                             sends ? memory.size() : size, sends ? size : memory.size()));
    }
    patience_.heard(peer);
    return {};
  }

  [[nodiscard]] Slot* new_slot() {
    if (free_.first == nullptr) {
      blocks_.push_back(std::make_unique<std::array<Slot, block_size>>());
      const std::size_t base = (blocks_.size() - 1) * block_size;
      for (std::size_t i = base == 0 ? 1 : 0; i < block_size; ++i) {  // slot 0 is no message
        Slot& made = (*blocks_.back())[i];
        made.number = static_cast<std::uint32_t>(base + i);
        free_.push(&made);
      }
    }
    return free_.pop();
  }

  // Takes this rank's messages out of a lane, and leaves the peer's.
  static void withdraw(Lane& lane, bool sends) {
    const std::lock_guard lock(lane.mutex);
    if (lane.first != nullptr && lane.first->sends == sends) lane.first = nullptr;
  }

  static constexpr std::size_t block_size = 64;
  std::shared_ptr<Group> group_;
  TransportTraits traits_;
  int spins_;
  Patience patience_;
  std::vector<std::unique_ptr<std::array<Slot, block_size>>> blocks_;
  struct {
    Slot* first = nullptr;
    void push(Slot* slot) {
      slot->next = first;
      first = slot;
    }
    Slot* pop() {
      Slot* slot = first;
      first = slot->next;
      return slot;
    }
  } free_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> thread_transports(int ranks, int streams,
                                                          Seconds patience) {
  if (ranks < 1 || streams < 1) {
    throw InputError(fmt::format("{} ranks with {} streams", ranks, streams),
                     "give at least one of each");
  }
  if (!(patience.value() > 0))
    throw InputError(fmt::format("a patience of {} s", patience.value()), "give more than 0 s");
  const auto group = std::make_shared<Group>(ranks, streams);
  std::vector<std::unique_ptr<Transport>> transports;
  for (int rank = 0; rank < ranks; ++rank)
    transports.push_back(std::make_unique<ThreadTransport>(group, rank, patience));
  return transports;
}

}  // namespace paceline::runtime

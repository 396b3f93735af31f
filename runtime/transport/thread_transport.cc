// Tests: tests/runtime/thread_transport_test.cc.
//
// IMPLEMENTATION. Each (stream, sender, receiver) has a lane: a queue of messages of which one end
// was posted. It holds sends or receives, never both, because a post that finds its other end takes
// it out. A small message is then copied at once, by whoever posted second. A large one is copied by
// its receiver, when it next looks for any of its messages: two ranks that exchange messages copy
// at the same time, whoever came second. Where ranks share cores all are copied at once, because
// nothing is gained by copying at the same time there. The receiver has a list of messages that it
// is to copy (`met`), to which senders add. `copies` of a rank counts its messages that a peer copies at this moment, and a rank
// that leaves waits for that count to be 0.
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
// Messages up to this size are copied when they meet. A copy of 8 KiB takes as long as it takes to
// tell the other core of it (0.2 us).
constexpr std::size_t largest_small_bytes = 8192;
constexpr long sleep_ns = 50'000'000;  // the longest sleep, after which patience is looked at

struct Slot {
  std::atomic<bool> done = false;
  bool sends = false;
  int peer = 0;
  std::byte* memory = nullptr;
  std::size_t size = 0;
  Slot* next = nullptr;  // in the lane, among those that are free, or among those that have met
  Slot* met = nullptr;   // the send that this receive is to copy from
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
  std::atomic<Slot*> met = nullptr;  // its receives that senders have met, the latest first
  std::atomic<int> copies = 0;       // its messages that peers copy at this moment
  std::atomic<bool> gone = false;
};

struct Group {
  Group(int rank_count, int stream_count, int cores)
      : ranks(rank_count),
        streams(stream_count),
        alone(rank_count <= cores),
        states(to_size(rank_count)),
        lanes(to_size(stream_count) * states.size() * states.size()) {}

  [[nodiscard]] Lane& lane(int stream, int from, int to) {
    return lanes[(to_size(stream) * states.size() + to_size(from)) * states.size() + to_size(to)];
  }
  [[nodiscard]] RankState& state(int rank) { return states[to_size(rank)]; }

  int ranks;
  int streams;
  bool alone;  // a core for each rank
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
    if (!is_done(message) && !(copy_next(&message) && is_done(message))) {
      patience_.missed(message.peer, message.sends, message.mark);
      return false;
    }
    patience_.heard(message.peer);
    free_.push(&message);
    return true;
  }

  void wait_any(std::span<const Request> requests) override {
    for (int spin = 0; spin < (group_->alone ? spins_alone : spins_shared); ++spin) {
      if (copies_or_any_done(requests)) return;
      pause_briefly();
    }
    for (int yield = 0; yield < yields; ++yield) {
      if (copies_or_any_done(requests)) return;
      sched_yield();
    }
    RankState& own = group_->state(traits_.rank);
    own.sleeps.store(true);
    const Awake awake{own};
    for (;;) {
      const std::uint32_t events = own.events.load();
      if (copies_or_any_done(requests)) return;
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

  // Whether one of the messages is done, or may be after this has copied another.
  [[nodiscard]] bool copies_or_any_done(std::span<const Request> requests) {
    return any_done(requests) || copy_next(nullptr);
  }

  // Copies one of the messages that have met: `wanted` if it has, or else the oldest. Returns
  // whether there was any.
  bool copy_next(const Slot* wanted) {
    RankState& own = group_->state(traits_.rank);
    if (own.met.load(std::memory_order_relaxed) != nullptr) {
      const auto known = to_copy_.size();
      for (Slot* met = own.met.exchange(nullptr, std::memory_order_acquire); met != nullptr;
           met = met->next)
        to_copy_.push_back(met);
      std::reverse(to_copy_.begin() + static_cast<std::ptrdiff_t>(known), to_copy_.end());
    }
    if (to_copy_.empty()) return false;
    auto next = std::find(to_copy_.begin(), to_copy_.end(), wanted);
    if (next == to_copy_.end()) next = to_copy_.begin();
    Slot& receive = **next;
    to_copy_.erase(next);
    copy(receive);
    return true;
  }

  void copy(Slot& receive) {
    RankState& sender = group_->state(receive.peer);
    sender.copies.fetch_add(1);
    if (sender.gone.load()) {
      sender.copies.fetch_sub(1);
      throw_lost(receive.peer, false, "it is gone");
    }
    std::memcpy(receive.memory, receive.met->memory, receive.size);
    receive.met->done.store(true, std::memory_order_release);
    sender.copies.fetch_sub(1);
    wake(sender);
    receive.done.store(true, std::memory_order_relaxed);
  }

  [[nodiscard]] Request post(Lane& lane, int peer, bool sends, std::span<std::byte> memory) {
    RankState& state = group_->state(peer);
    Slot* other = nullptr;
    {
      const std::lock_guard lock(lane.mutex);
      if (state.gone.load()) throw_lost(peer, sends, "it is gone");
      if (lane.first == nullptr || lane.first->sends == sends) {
        Slot* own = new_slot(peer, sends, memory);
        lane.push(own);
        return {own->number};
      }
      other = lane.pop();
      if (other->size == memory.size() && group_->alone && memory.size() > largest_small_bytes)
        return meet(*new_slot(peer, sends, memory), *other);
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

  // The lane's lock is held: the other rank has not left.
  [[nodiscard]] Request meet(Slot& own, Slot& other) {
    if (!own.sends) {
      own.met = &other;
      to_copy_.push_back(&own);
      return {own.number};
    }
    other.met = &own;
    RankState& receiver = group_->state(own.peer);
    other.next = receiver.met.load(std::memory_order_relaxed);
    while (!receiver.met.compare_exchange_weak(other.next, &other, std::memory_order_release,
                                               std::memory_order_relaxed)) {
    }
    wake(receiver);
    return {own.number};
  }

  [[nodiscard]] Slot* new_slot(int peer, bool sends, std::span<std::byte> memory) {
    Slot* own = free_slot();
    own->done.store(false, std::memory_order_relaxed);
    own->sends = sends;
    own->peer = peer;
    own->memory = memory.data();
    own->size = memory.size();
    own->mark = {};
    return own;
  }
  [[nodiscard]] Slot* free_slot() {
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
  Patience patience_;
  std::vector<std::unique_ptr<std::array<Slot, block_size>>> blocks_;
  std::vector<Slot*> to_copy_;  // receives that have met their sends, the oldest first
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

std::vector<std::unique_ptr<Transport>> thread_transports(int ranks, int streams, Seconds patience,
                                                          int cores) {
  if (ranks < 1 || streams < 1) {
    throw InputError(fmt::format("{} ranks with {} streams", ranks, streams),
                     "give at least one of each");
  }
  if (!(patience.value() > 0))
    throw InputError(fmt::format("a patience of {} s", patience.value()), "give more than 0 s");
  if (cores == 0) cores = static_cast<int>(std::thread::hardware_concurrency());
  const auto group = std::make_shared<Group>(ranks, streams, cores);
  std::vector<std::unique_ptr<Transport>> transports;
  for (int rank = 0; rank < ranks; ++rank)
    transports.push_back(std::make_unique<ThreadTransport>(group, rank, patience));
  return transports;
}

}  // namespace paceline::runtime

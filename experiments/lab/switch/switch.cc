#include "experiments/lab/switch/switch.h"

#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <queue>
#include <span>
#include <system_error>

#include "models/base/to_size.h"

namespace paceline::lab {
namespace {

// A host's frames stay with the host while its link has this much to send: enough that the link
// does not run dry while the switch sleeps too long, and little, so that hosts feel their rate.
constexpr Nanoseconds lookahead = 2'000'000;
// Frames that are taken from one host before the others have their turn.
constexpr int frames_per_turn = 16;

Nanoseconds now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

using Buffer = std::vector<std::byte>;

// A frame that reaches a link or its host; or, without bytes, a host whose link takes frames again.
struct Event {
  Nanoseconds due = 0;
  std::int64_t order = 0;  // frames that are due together stay in order
  int host = 0;
  Buffer frame;
  Transit way;  // of the frame
};
struct Later {
  bool operator()(const Event& a, const Event& b) const {
    return a.due != b.due ? a.due > b.due : a.order > b.order;
  }
};

}  // namespace

class Switch::Loop {
 public:
  Loop(Fabric fabric, std::vector<Tap> taps, Nanoseconds late_after)
      : fabric_(std::move(fabric)),
        taps_(std::move(taps)),
        late_after_(late_after),
        epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    if (epoll_ < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
    held_back_.assign(taps_.size(), false);
    for (int host = 0; host < fabric_.hosts(); ++host) listen(host, EPOLL_CTL_ADD, EPOLLIN);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() { close(epoll_); }

  SwitchReport run(const std::function<bool()>& stopped) {
    while (!stopped()) {
      std::array<epoll_event, 64> ready{};
      const int count = wait(ready);
      for (int i = 0; i < count; ++i) {
        take_from(static_cast<int>(ready[to_size(i)].data.u32));
      }
      deliver_due();
    }
    return report_;
  }

 private:
  void listen(int host, int operation, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u32 = static_cast<std::uint32_t>(host);
    if (epoll_ctl(epoll_, operation, file(host), &event) < 0) {
      throw std::system_error(errno, std::generic_category(), "epoll_ctl");
    }
  }
  [[nodiscard]] int file(int host) const { return taps_[to_size(host)].file(); }

  // Sleeps until a host sends, the next frame is due, a signal comes or a second has passed.
  int wait(std::span<epoll_event> ready) {
    Nanoseconds left = 1'000'000'000;
    if (!events_.empty()) left = std::clamp<Nanoseconds>(events_.top().due - now(), 0, left);
    const timespec timeout{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
    return epoll_pwait2(epoll_, ready.data(), static_cast<int>(ready.size()), &timeout, nullptr);
  }

  void take_from(int host) {
    const Nanoseconds time = now();
    auto held_back = held_back_[to_size(host)];
    for (int i = 0; i < frames_per_turn; ++i) {
      if (fabric_.idle_at(host) - time > lookahead) {
        held_back = true;
        listen(host, EPOLL_CTL_MOD, 0);
        events_.push({fabric_.idle_at(host) - lookahead / 2, order_++, host, {}, {}});
        return;
      }
      const ssize_t bytes = read(file(host), room_.data(), room_.size());
      if (bytes < static_cast<ssize_t>(sizeof(FrameHeader))) {
        held_back = false;
        return;
      }
      // A host that was held back had frames ready: its link went on while the switch slept.
      const Nanoseconds handed_over = held_back ? std::min(time, fabric_.idle_at(host)) : time;
      send(host, std::span(room_).first(to_size(bytes)), handed_over);
    }
  }

  void send(int from, std::span<const std::byte> bytes, Nanoseconds time) {
    FrameHeader header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    const auto frame = bytes.subspan(sizeof header);
    const int to = destination(frame);
    // Frames for all hosts are not carried: hosts know each other's addresses and need none.
    if (to < 0 || to >= fabric_.hosts() || to == from) return;
    const std::int64_t on_wire =
        wire_bytes(static_cast<std::int64_t>(frame.size()), header.header_bytes,
                   header.segmentation == 0 ? 0 : header.segment_bytes);
    report_.wire_bytes += on_wire;
    Buffer copy = spare_buffer();
    copy.assign(bytes.begin(), bytes.end());
    const Transit way = fabric_.send(from, to, on_wire, time);
    events_.push({way.next_at(), order_++, to, std::move(copy), way});
  }

  void deliver_due() {
    const Nanoseconds time = now();
    bool is_first = true;
    while (!events_.empty() && events_.top().due <= time) {
      // The order of the queue does not depend on the bytes.
      Event event = std::move(const_cast<Event&>(events_.top()));
      events_.pop();
      if (event.frame.empty()) {
        listen(event.host, EPOLL_CTL_MOD, EPOLLIN);
        // If the host has nothing ready now, its next frame is not one that waited.
        take_from(event.host);
        continue;
      }
      if (!event.way.is_there()) {
        fabric_.pass(event.way);
        event.due = event.way.next_at();
        event.order = order_++;
        events_.push(std::move(event));
        continue;
      }
      // The first frame of a batch tells for how long nothing was delivered.
      if (is_first && time - event.due > late_after_) report_.held_up += time - event.due;
      is_first = false;
      if (write(file(event.host), event.frame.data(), event.frame.size()) < 0) ++report_.refused;
      report_.lateness.add(time - event.due);
      spare_.push_back(std::move(event.frame));
    }
  }

  Buffer spare_buffer() {
    if (spare_.empty()) return {};
    Buffer buffer = std::move(spare_.back());
    spare_.pop_back();
    return buffer;
  }

  Fabric fabric_;
  std::vector<Tap> taps_;
  Nanoseconds late_after_;
  int epoll_;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::vector<Buffer> spare_;
  std::vector<bool> held_back_;  // hosts, since the switch last found nothing more to take
  Buffer room_ = Buffer(largest_frame);
  std::int64_t order_ = 0;
  SwitchReport report_;
};

Switch::Switch(Fabric fabric, std::vector<Tap> taps, Nanoseconds late_after)
    : loop_(std::make_unique<Loop>(std::move(fabric), std::move(taps), late_after)) {}

Switch::~Switch() = default;

SwitchReport Switch::run(const std::function<bool()>& stopped) {
  return loop_->run(stopped);
}

}  // namespace paceline::lab

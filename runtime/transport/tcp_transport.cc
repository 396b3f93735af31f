// Tests: tests/runtime/tcp_transport_test.cc.
//
// IMPLEMENTATION. A link is one connection, with the messages that it is to send and to receive in
// their order. What waits moves all links that have any, by one poll() for all of them, so that a rank
// which waits for a receive goes on sending.
#include "runtime/transport/tcp_transport.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "runtime/transport/patience.h"

namespace paceline::runtime {
namespace {

constexpr models::MessageSizes sizes{
    .smallest_bytes = 1 << 14, .largest_bytes = 1 << 18, .ahead_bytes = 1 << 19};
// How long one sleep lasts before patience is asked again.
constexpr int longest_sleep_ms = 20;

struct Slot {
  std::size_t link = 0;
  int peer = 0;
  bool sends = false;
  bool done = false;
  std::byte* data = nullptr;
  std::size_t size = 0;
  // The connection carries the length first, and then the bytes.
  std::uint64_t length = 0;
  std::size_t moved = 0;
  std::uint32_t next = 0;  // free slot
  Patience::Mark mark = {};
};

struct Link {
  tcp::Socket socket;
  bool gone = false;
  std::deque<std::uint32_t> sends;
  std::deque<std::uint32_t> receives;
};

class TcpTransport final : public Transport {
 public:
  TcpTransport(std::vector<tcp::Connections> streams, int rank, int ranks, Seconds patience)
      : traits_{.name = "tcp",
                .rank = rank,
                .ranks = ranks,
                .streams = static_cast<int>(streams.size()),
                .message_sizes = sizes},
        patience_(patience, ranks) {
    for (tcp::Connections& connections : streams) {
      for (tcp::Socket& socket : connections) links_.emplace_back().socket = std::move(socket);
    }
    slots_.emplace_back();  // slot 0 is no message
  }

  [[nodiscard]] const TransportTraits& traits() const override { return traits_; }

  [[nodiscard]] Request post_send(int stream, int to, std::span<const std::byte> message) override {
    // The memory of a send is only read.
    return post(stream, to, true, {const_cast<std::byte*>(message.data()), message.size()});
  }
  [[nodiscard]] Request post_receive(int stream, int from, std::span<std::byte> room) override {
    return post(stream, from, false, room);
  }

  [[nodiscard]] bool test(Request request) override {
    if (request.slot == 0) return true;
    if (!slots_[request.slot].done) progress(0);
    Slot& slot = slots_[request.slot];
    if (!is_done(slot)) {
      patience_.missed(slot.peer, slot.sends, slot.mark);
      return false;
    }
    patience_.heard(slot.peer);
    slot.next = first_free_;
    first_free_ = request.slot;
    return true;
  }

  void wait_any(std::span<const Request> requests) override {
    for (int sleep_ms = 0;; sleep_ms = std::min(2 * sleep_ms + 1, longest_sleep_ms)) {
      for (const Request request : requests) {
        if (request.slot == 0 || is_done(slots_[request.slot])) return;
      }
      if (progress(sleep_ms)) continue;
      for (const Request request : requests) {
        Slot& slot = slots_[request.slot];
        if (!slot.done) patience_.expect(slot.peer, slot.sends, slot.mark);
      }
    }
  }

  [[nodiscard]] int lost_peer() const override {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (links_[i].gone) return peer_of(i);
    }
    return -1;
  }

  void abort() noexcept override {
    for (Link& link : links_) {
      link.socket.shut_down();
      link.sends.clear();
      link.receives.clear();
    }
  }

 private:
  [[nodiscard]] int peer_of(std::size_t link) const {
    return static_cast<int>(link % to_size(traits_.ranks));
  }

  [[nodiscard]] Request post(int stream, int peer, bool sends, std::span<std::byte> memory) {
    const std::size_t index = to_size(stream) * to_size(traits_.ranks) + to_size(peer);
    if (first_free_ == 0) {
      slots_.emplace_back();
      first_free_ = static_cast<std::uint32_t>(slots_.size() - 1);
    }
    const Request made{first_free_};
    Slot& slot = slots_[made.slot];
    first_free_ = slot.next;
    slot = {.link = index,
            .peer = peer,
            .sends = sends,
            .data = memory.data(),
            .size = memory.size(),
            .length = sends ? memory.size() : 0};
    Link& link = links_[index];
    std::deque<std::uint32_t>& queue = sends ? link.sends : link.receives;
    queue.push_back(made.slot);
    if (queue.size() == 1) move(link, sends);
    return made;
  }

  // Throws if the peer is gone and did not do its part before.
  [[nodiscard]] bool is_done(const Slot& slot) const {
    if (slot.done) return true;
    if (links_[slot.link].gone) throw_lost(slot.peer, slot.sends, "it is gone");
    return false;
  }

  // Sends or receives what can be at once, until the connection takes or has no more.
  void move(Link& link, bool sends) {
    std::deque<std::uint32_t>& queue = sends ? link.sends : link.receives;
    while (!queue.empty() && !link.gone) {
      Slot& slot = slots_[queue.front()];
      if (!(sends ? send_some(link, slot) : receive_some(link, slot))) return;
      if (slot.moved < sizeof slot.length + slot.size) continue;
      slot.done = true;
      queue.pop_front();
    }
  }

  // Return whether any bytes moved.
  static bool send_some(Link& link, Slot& slot) {
    const std::size_t of_length = std::min(slot.moved, sizeof slot.length);
    const std::size_t of_data = slot.moved - of_length;
    std::array<iovec, 2> parts{iovec{reinterpret_cast<std::byte*>(&slot.length) + of_length,
                                     sizeof slot.length - of_length},
                               iovec{slot.data + of_data, slot.size - of_data}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    return came(link, slot, ::sendmsg(link.socket.get(), &message, MSG_NOSIGNAL), true);
  }
  static bool receive_some(Link& link, Slot& slot) {
    const bool in_length = slot.moved < sizeof slot.length;
    std::byte* const to = in_length ? reinterpret_cast<std::byte*>(&slot.length) + slot.moved
                                    : slot.data + (slot.moved - sizeof slot.length);
    const std::size_t left = sizeof slot.length + (in_length ? 0 : slot.size) - slot.moved;
    const bool moved = left == 0 || came(link, slot, ::recv(link.socket.get(), to, left, 0), false);
    if (in_length && slot.moved == sizeof slot.length && slot.length != slot.size)
      throw_lost(slot.peer, false,
                 fmt::format("{} bytes were sent where {} are received", slot.length, slot.size));
    return moved;
  }
  static bool came(Link& link, Slot& slot, ssize_t bytes, bool sends) {
    if (bytes > 0 || (bytes == 0 && sends)) {
      slot.moved += to_size(bytes);
      return bytes > 0;
    }
    if (bytes == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) link.gone = true;
    return false;
  }

  // Moves what can be moved, after waiting so long for that. Returns whether there was any.
  bool progress(int wait_ms) {
    polled_.clear();
    polled_links_.clear();
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const Link& link = links_[i];
      if (link.gone || (link.sends.empty() && link.receives.empty())) continue;
      const int events = (link.sends.empty() ? 0 : POLLOUT) | (link.receives.empty() ? 0 : POLLIN);
      polled_.push_back({link.socket.get(), static_cast<short>(events), 0});
      polled_links_.push_back(i);
    }
    if (polled_.empty() || ::poll(polled_.data(), polled_.size(), wait_ms) <= 0) return false;
    for (std::size_t i = 0; i < polled_.size(); ++i) {
      const int found = polled_[i].revents;
      if (found == 0) continue;
      Link& link = links_[polled_links_[i]];
      constexpr int ended = POLLHUP | POLLERR | POLLNVAL;
      if ((found & (POLLIN | ended)) != 0) move(link, false);
      if ((found & (POLLOUT | ended)) != 0) move(link, true);
    }
    return true;
  }

  TransportTraits traits_;
  Patience patience_;
  std::deque<Link> links_;  // by stream and peer
  std::vector<Slot> slots_;
  std::uint32_t first_free_ = 0;
  std::vector<pollfd> polled_;
  std::vector<std::size_t> polled_links_;
};

}  // namespace

std::unique_ptr<Transport> tcp_transport(std::vector<tcp::Connections> streams, int rank, int ranks,
                                         Seconds patience) {
  if (!(patience.value() > 0))
    throw InputError(fmt::format("a patience of {} s", patience.value()), "give more than 0 s");
  return std::make_unique<TcpTransport>(std::move(streams), rank, ranks, patience);
}

}  // namespace paceline::runtime

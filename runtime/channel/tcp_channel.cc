// Tests: tests/runtime/channel/tcp_channel_test.cc.
//
// IMPLEMENTATION. Sockets do not block; each read and write waits by poll() for as long as the
// patience. A message is its length, in 8 bytes, and its bytes.
#include "runtime/channel/tcp_channel.h"

#include <fmt/format.h>
#include <poll.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "runtime/transport/lost_rank.h"

namespace paceline::runtime {

using tcp::Connections;
using tcp::End;
using tcp::Socket;

struct TcpChannel::State {
  [[nodiscard]] const Socket& socket_of(int peer) const {
    PACELINE_ASSERT(peer >= 0 && peer < static_cast<int>(sockets.size()) && peer != rank,
                    "a message goes to another rank");
    return sockets[to_size(peer)];
  }
  void expect(End end, int peer, bool sends) const {
    if (end == End::gone) throw_lost(peer, sends, "it is gone");
    if (end == End::silent)
      throw_lost(peer, sends, fmt::format("nothing came from it for {:g} s", patience.value()));
  }
  void write(int to, std::span<const std::byte> bytes) const {
    expect(tcp::write_all(socket_of(to), bytes, patience), to, true);
  }
  void read(int from, std::span<std::byte> bytes) const {
    expect(tcp::read_all(socket_of(from), bytes, patience), from, false);
  }

  Connections sockets;
  int rank = 0;
  Seconds patience;
};

TcpChannel::TcpChannel(const Rendezvous& rendezvous, const JobIdentity& job, int rank, int ranks,
                       Seconds patience)
    : TcpChannel(tcp::Meeting(rendezvous, job, rank, ranks, patience).first(), rank, patience) {}

TcpChannel::TcpChannel(Connections connections, int rank, Seconds patience)
    : state_(std::make_unique<State>(State{std::move(connections), rank, patience})) {}

TcpChannel::~TcpChannel() = default;

int TcpChannel::rank() const {
  return state_->rank;
}

int TcpChannel::ranks() const {
  return static_cast<int>(state_->sockets.size());
}

void TcpChannel::send(int to, std::span<const std::byte> message) {
  const std::uint64_t length = message.size();
  state_->write(to, std::as_bytes(std::span(&length, 1)));
  state_->write(to, message);
}

void TcpChannel::receive(int from, std::span<std::byte> room) {
  std::uint64_t length = 0;
  state_->read(from, std::as_writable_bytes(std::span(&length, 1)));
  if (length != room.size())
    throw RunError(fmt::format("receive from rank {}", from),
                   fmt::format("it sent {} bytes, and {} were expected: it runs another program",
                               length, room.size()));
  state_->read(from, room);
}

int TcpChannel::lost_peer() const {
  std::vector<pollfd> asked;
  for (const Socket& socket : state_->sockets) asked.push_back({socket.get(), POLLRDHUP, 0});
  if (::poll(asked.data(), asked.size(), 0) <= 0) return -1;
  for (std::size_t peer = 0; peer < asked.size(); ++peer) {
    if ((asked[peer].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) return static_cast<int>(peer);
  }
  return -1;
}

void TcpChannel::abort() noexcept {
  for (const Socket& socket : state_->sockets) socket.shut_down();
}

}  // namespace paceline::runtime

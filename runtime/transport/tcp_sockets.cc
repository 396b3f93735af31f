// Tests: tests/runtime/channel/tcp_channel_test.cc.
#include "runtime/transport/tcp_sockets.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "models/base/to_size.h"

namespace paceline::runtime::tcp {
namespace {

constexpr std::size_t most_at_once = std::size_t{1} << 30;

bool may_go_on() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

// Whether the socket can be read from or written to, or has an end to report, before so long.
bool becomes_ready(int socket, short events, Seconds patience) {
  const Clock::time_point deadline = after(patience);
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waited{socket, events, 0};
    const int ready = ::poll(&waited, 1, static_cast<int>(std::clamp<long>(left + 1, 0, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // the next call says what is wrong
    if (left < 0) return false;
  }
}

}  // namespace

Clock::time_point after(Seconds time) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time.value()));
}

Socket::~Socket() {
  if (descriptor_ != none) ::close(descriptor_);
}

bool Socket::is_gone() const {
  std::byte next{};
  const ssize_t got = ::recv(descriptor_, &next, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && !may_go_on());
}

void Socket::shut_down() const noexcept {
  if (is_open()) ::shutdown(descriptor_, SHUT_RDWR);
}

int write_some(const Socket& socket, std::span<const std::byte> bytes) {
  const ssize_t sent =
      ::send(socket.get(), bytes.data(), std::min(bytes.size(), most_at_once), MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<int>(sent);
  return may_go_on() ? 0 : -1;
}

int read_some(const Socket& socket, std::span<std::byte> bytes) {
  if (bytes.empty()) return 0;
  const ssize_t got = ::recv(socket.get(), bytes.data(), std::min(bytes.size(), most_at_once), 0);
  if (got > 0) return static_cast<int>(got);
  return got < 0 && may_go_on() ? 0 : -1;
}

End write_all(const Socket& socket, std::span<const std::byte> bytes, Seconds patience) {
  while (!bytes.empty()) {
    const int sent = write_some(socket, bytes);
    if (sent < 0) return End::gone;
    if (sent == 0 && !becomes_ready(socket.get(), POLLOUT, patience)) return End::silent;
    bytes = bytes.subspan(to_size(sent));
  }
  return End::done;
}

End read_all(const Socket& socket, std::span<std::byte> bytes, Seconds patience) {
  while (!bytes.empty()) {
    const int got = read_some(socket, bytes);
    if (got < 0) return End::gone;
    if (got == 0 && !becomes_ready(socket.get(), POLLIN, patience)) return End::silent;
    bytes = bytes.subspan(to_size(got));
  }
  return End::done;
}

}  // namespace paceline::runtime::tcp

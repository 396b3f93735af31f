// Tests: tests/runtime/channel/tcp_channel_test.cc.
//
// IMPLEMENTATION. Sockets do not block; each read and write waits by poll() for as long as the
// patience. Rank i connects to the ranks before it and accepts those behind it: a connection is
// complete before it is accepted, and a greeting fits its buffers, so that no order of the ranks can
// deadlock. A message is its length, in 8 bytes, and its bytes. Machines are assumed to have one byte
// order.
#include "runtime/channel/tcp_channel.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "models/base/error.h"
#include "runtime/transport/lost_rank.h"

namespace paceline::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view operation = "start the job";
constexpr std::uint64_t protocol = 0x50434c4e54435031;  // "PCLNTCP1"
constexpr Seconds longest_greeting{5};

std::string error_text() {
  return std::strerror(errno);
}

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, none)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket() {
    if (descriptor_ != none) ::close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  [[nodiscard]] int get() const { return descriptor_; }
  [[nodiscard]] bool is_open() const { return descriptor_ != none; }

 private:
  static constexpr int none = -1;
  int descriptor_ = none;
};

// Where a rank listens, as the others reach it.
struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  void set_port(std::uint16_t port) {
    if (storage.ss_family == AF_INET6)
      reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port = htons(port);
    else
      reinterpret_cast<sockaddr_in*>(&storage)->sin_port = htons(port);
  }
  [[nodiscard]] std::uint16_t port() const {
    return ntohs(storage.ss_family == AF_INET6
                     ? reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port
                     : reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
  }
};

// What a rank says first on a connection.
struct Greeting {
  std::uint64_t spoken = protocol;
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
  std::uint32_t port = 0;  // where it listens
  std::uint32_t unused = 0;
};

// Whether the socket can be read from or written to, or has an end to report, before so long.
bool becomes_ready(int socket, short events, Seconds patience) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(patience.value());
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

enum class End { done, gone, silent };

End write_all(int socket, std::span<const std::byte> bytes, Seconds patience) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!becomes_ready(socket, POLLOUT, patience)) return End::silent;
    } else if (errno != EINTR) {
      return End::gone;
    }
  }
  return End::done;
}

End read_all(int socket, std::span<std::byte> bytes, Seconds patience) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got == 0) {
      return End::gone;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!becomes_ready(socket, POLLIN, patience)) return End::silent;
    } else if (errno != EINTR) {
      return End::gone;
    }
  }
  return End::done;
}

template <class T>
std::span<const std::byte> bytes_of_value(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
std::span<std::byte> writable_bytes_of_value(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

void set_no_delay(const Socket& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Listens on all addresses of the machine, at the port or, for 0, at one that is free.
Socket listen_at(int family, std::uint16_t port) {
  const auto failed = [&] {
    return RunError(fmt::format("listen at port {}", port), error_text());
  };
  Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) throw failed();
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  Address address;
  address.storage.ss_family = static_cast<sa_family_t>(family);  // the rest is 0: all addresses
  address.size = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  address.set_port(port);
  if (::bind(socket.get(), address.get(), address.size) != 0) throw failed();
  if (::listen(socket.get(), SOMAXCONN) != 0) throw failed();
  return socket;
}

Address own_address(const Socket& socket) {
  Address address;
  address.size = sizeof address.storage;
  ::getsockname(socket.get(), address.get(), &address.size);
  return address;
}

// A socket that is connected; one that is not open if that failed.
Socket connect_to(const Address& address, Seconds patience) {
  Socket socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return {};
  if (::connect(socket.get(), address.get(), address.size) != 0) {
    if (errno != EINPROGRESS) return {};
    if (!becomes_ready(socket.get(), POLLOUT, patience)) {
      errno = ETIMEDOUT;
      return {};
    }
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      errno = error;
      return {};
    }
  }
  set_no_delay(socket);
  return socket;
}

std::vector<Address> resolve(const Rendezvous& rendezvous) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int status = ::getaddrinfo(rendezvous.host.c_str(), std::to_string(rendezvous.port).c_str(),
                                   &hints, &first);
  if (status != 0)
    throw RunError(fmt::format("find host {}", rendezvous.host), ::gai_strerror(status));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(first, &::freeaddrinfo);
  std::vector<Address> addresses;
  for (const addrinfo* at = first; at != nullptr; at = at->ai_next) {
    Address& address = addresses.emplace_back();
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    address.size = at->ai_addrlen;
  }
  return addresses;
}

}  // namespace

Rendezvous rendezvous_from(std::string_view text) {
  const auto wrong = [&] {
    return InputError(fmt::format("{} is no place to meet", in_quotes(text)),
                      "give a host and a port, such as node7:29500 or [::1]:29500");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) throw wrong();
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    throw wrong();
  Rendezvous place{.host = std::string(host)};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), place.port);
  if (host.empty() || error != std::errc() || end != port.data() + port.size() || place.port == 0)
    throw wrong();
  return place;
}

struct TcpChannel::State {
  State(const Rendezvous& rendezvous, int r, int n, Seconds p)
      : rank(r), ranks(n), patience(p), sockets(static_cast<std::size_t>(n)) {
    if (ranks == 1) return;
    if (rank == 0)
      meet(rendezvous);
    else
      go_to(rendezvous);
  }

  // Accepts a greeting on the listening socket, from a rank above `above`, and keeps its connection.
  Greeting accept(const Socket& listener, int above, Clock::time_point deadline) {
    for (;;) {
      const std::chrono::duration<double> left = deadline - Clock::now();
      if (left.count() <= 0 || !becomes_ready(listener.get(), POLLIN, Seconds{left.count()})) {
        for (int other = above + 1; other < ranks; ++other) {
          if (!sockets[static_cast<std::size_t>(other)].is_open())
            throw LostRank(std::string(operation),
                           fmt::format("rank {} did not come in {:g} s", other, patience.value()));
        }
      }
      Socket socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.is_open()) continue;
      Greeting greeting;
      const Seconds wait{std::min(longest_greeting.value(), patience.value())};
      if (read_all(socket.get(), writable_bytes_of_value(greeting), wait) != End::done ||
          greeting.spoken != protocol)
        continue;
      if (greeting.ranks != ranks)
        throw RunError(std::string(operation),
                       fmt::format("rank {} counts {} ranks, and rank {} {}", greeting.rank,
                                   greeting.ranks, rank, ranks));
      if (greeting.rank <= above || greeting.rank >= ranks ||
          sockets[static_cast<std::size_t>(greeting.rank)].is_open())
        throw RunError(std::string(operation),
                       fmt::format("two processes say that they are rank {}", greeting.rank));
      set_no_delay(socket);
      sockets[static_cast<std::size_t>(greeting.rank)] = std::move(socket);
      return greeting;
    }
  }

  [[nodiscard]] Clock::time_point deadline() const {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                              std::chrono::duration<double>(patience.value()));
  }

  // Rank 0: all come to it, and it tells all where the others listen.
  void meet(const Rendezvous& rendezvous) {
    const int family = resolve(rendezvous).front().storage.ss_family;
    const Socket listener = listen_at(family, rendezvous.port);
    std::vector<Address> addresses(static_cast<std::size_t>(ranks));
    const Clock::time_point end = deadline();
    for (int i = 1; i < ranks; ++i) {
      const Greeting greeting = accept(listener, 0, end);
      const auto other = static_cast<std::size_t>(greeting.rank);
      Address& address = addresses[other];
      address.size = sizeof address.storage;
      ::getpeername(sockets[other].get(), address.get(), &address.size);
      address.set_port(static_cast<std::uint16_t>(greeting.port));
    }
    for (int other = 1; other < ranks; ++other) write(other, std::as_bytes(std::span(addresses)));
  }

  void go_to(const Rendezvous& rendezvous) {
    const Clock::time_point end = deadline();
    Socket socket = find_rank_0(rendezvous, end);
    const Socket listener = listen_at(own_address(socket).storage.ss_family, 0);
    const Greeting greeting{.rank = rank, .ranks = ranks, .port = own_address(listener).port()};
    sockets[0] = std::move(socket);
    write(0, bytes_of_value(greeting));
    std::vector<Address> addresses(static_cast<std::size_t>(ranks));
    read(0, std::as_writable_bytes(std::span(addresses)));
    for (int other = 1; other < rank; ++other) {
      Socket made = connect_to(addresses[static_cast<std::size_t>(other)], patience);
      if (!made.is_open()) throw LostRank(fmt::format("connect to rank {}", other), error_text());
      sockets[static_cast<std::size_t>(other)] = std::move(made);
      write(other, bytes_of_value(greeting));
    }
    for (int other = rank + 1; other < ranks; ++other)
      static_cast<void>(accept(listener, rank, end));
  }

  // Rank 0 may come later than this rank.
  [[nodiscard]] Socket find_rank_0(const Rendezvous& rendezvous, Clock::time_point end) const {
    constexpr std::chrono::milliseconds between_tries{20};
    const std::vector<Address> addresses = resolve(rendezvous);
    for (;;) {
      for (const Address& address : addresses) {
        Socket socket = connect_to(address, patience);
        if (socket.is_open()) return socket;
      }
      if (Clock::now() > end)
        throw LostRank(
            fmt::format("connect to rank 0 at {} port {}", rendezvous.host, rendezvous.port),
            error_text());
      std::this_thread::sleep_for(between_tries);
    }
  }

  [[nodiscard]] int socket_of(int peer) const {
    PACELINE_ASSERT(peer >= 0 && peer < ranks && peer != rank, "a message goes to another rank");
    return sockets[static_cast<std::size_t>(peer)].get();
  }
  void expect(End end, int peer, bool sends) const {
    if (end == End::gone) throw_lost(peer, sends, "it is gone");
    if (end == End::silent)
      throw_lost(peer, sends, fmt::format("nothing came from it for {:g} s", patience.value()));
  }
  void write(int to, std::span<const std::byte> bytes) const {
    expect(write_all(socket_of(to), bytes, patience), to, true);
  }
  void read(int from, std::span<std::byte> bytes) const {
    expect(read_all(socket_of(from), bytes, patience), from, false);
  }

  int rank = 0;
  int ranks = 1;
  Seconds patience;
  std::vector<Socket> sockets;  // by rank; that of this rank is not open
};

TcpChannel::TcpChannel(const Rendezvous& rendezvous, int rank, int ranks, Seconds patience)
    : state_(std::make_unique<State>(rendezvous, rank, ranks, patience)) {}

TcpChannel::~TcpChannel() = default;

int TcpChannel::rank() const {
  return state_->rank;
}

int TcpChannel::ranks() const {
  return state_->ranks;
}

void TcpChannel::send(int to, std::span<const std::byte> message) {
  const std::uint64_t length = message.size();
  state_->write(to, bytes_of_value(length));
  state_->write(to, message);
}

void TcpChannel::receive(int from, std::span<std::byte> room) {
  std::uint64_t length = 0;
  state_->read(from, writable_bytes_of_value(length));
  if (length != room.size())
    throw RunError(fmt::format("receive from rank {}", from),
                   fmt::format("it sent {} bytes, and {} were expected: it runs another program",
                               length, room.size()));
  state_->read(from, room);
}

void TcpChannel::abort() noexcept {
  for (const Socket& socket : state_->sockets) {
    if (socket.is_open()) ::shutdown(socket.get(), SHUT_RDWR);
  }
}

}  // namespace paceline::runtime

// Tests: tests/runtime/channel/tcp_channel_test.cc.
//
// IMPLEMENTATION. Rank i connects to the ranks before it and accepts those behind it: a connection is
// complete before it is accepted, and a greeting fits its buffers, so that no order of the ranks can
// deadlock. Machines are assumed to have one byte order.
#include "runtime/transport/tcp_connections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
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
#include <optional>
#include <thread>

#include "models/base/error.h"
#include "runtime/transport/lost_rank.h"

namespace paceline::runtime {

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

namespace tcp {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view operation = "start the job";
constexpr std::uint64_t protocol = 0x50434c4e54435032;  // "PCLNTCP2"
constexpr Seconds longest_greeting{5};

std::string error_text() {
  return std::strerror(errno);
}

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
  std::int32_t lane = 0;   // which of its connections with this peer it is
};

// What rank 0 answers. Where something is wrong, two texts follow; else the addresses of all ranks.
struct Verdict {
  enum : std::uint32_t { all_came, input, lost };
  std::uint32_t outcome = all_came;
  std::uint32_t problem_bytes = 0;
  std::uint32_t remedy_bytes = 0;
};
constexpr std::size_t longest_text = 4096;

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

Socket::~Socket() {
  if (descriptor_ != none) ::close(descriptor_);
}

void Socket::shut_down() const noexcept {
  if (is_open()) ::shutdown(descriptor_, SHUT_RDWR);
}

End write_all(const Socket& socket, std::span<const std::byte> bytes, Seconds patience) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!becomes_ready(socket.get(), POLLOUT, patience)) return End::silent;
    } else if (errno != EINTR) {
      return End::gone;
    }
  }
  return End::done;
}

End read_all(const Socket& socket, std::span<std::byte> bytes, Seconds patience) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(socket.get(), bytes.data(), bytes.size(), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got == 0) {
      return End::gone;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!becomes_ready(socket.get(), POLLIN, patience)) return End::silent;
    } else if (errno != EINTR) {
      return End::gone;
    }
  }
  return End::done;
}

struct Meeting::State {
  State(const Rendezvous& place, int r, int n, Seconds p)
      : rank(r),
        ranks(n),
        patience(p),
        sockets(static_cast<std::size_t>(n)),
        addresses(static_cast<std::size_t>(n)) {
    if (ranks == 1) return;
    if (rank == 0)
      gather_all(place);
    else
      go_to(place);
  }

  [[nodiscard]] Clock::time_point deadline() const {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                              std::chrono::duration<double>(patience.value()));
  }

  // A connection that greets as the protocol says, with its greeting; nothing if none came in time.
  [[nodiscard]] std::optional<std::pair<Greeting, Socket>> accept(Clock::time_point end) const {
    for (;;) {
      const std::chrono::duration<double> left = end - Clock::now();
      if (left.count() <= 0 || !becomes_ready(listener.get(), POLLIN, Seconds{left.count()}))
        return std::nullopt;
      Socket socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.is_open()) continue;
      Greeting greeting;
      const Seconds wait{std::min(longest_greeting.value(), patience.value())};
      if (read_all(socket, writable_bytes_of_value(greeting), wait) != End::done ||
          greeting.spoken != protocol)
        continue;
      set_no_delay(socket);
      return std::pair(greeting, std::move(socket));
    }
  }

  // Rank 0: all come to it, and it tells all where the others listen.
  void gather_all(const Rendezvous& place) {
    listener = listen_at(resolve(place).front().storage.ss_family, place.port);
    const Clock::time_point end = deadline();
    for (int i = 1; i < ranks; ++i) {
      auto came = accept(end);
      if (!came) refuse_absent();
      auto& [greeting, socket] = *came;
      if (greeting.ranks != ranks)
        refuse({.problem = fmt::format("rank {} was started for {} ranks, and rank 0 for {}",
                                       greeting.rank, greeting.ranks, ranks),
                .remedy = "start all with the same --ranks"},
               socket);
      if (greeting.rank <= 0 || greeting.rank >= ranks || socket_of(greeting.rank).is_open())
        refuse({.problem = fmt::format("two processes say that they are rank {}", greeting.rank),
                .remedy = fmt::format("give each one of the ranks 0 to {}", ranks - 1)},
               socket);
      Address& address = addresses[static_cast<std::size_t>(greeting.rank)];
      address.size = sizeof address.storage;
      ::getpeername(socket.get(), address.get(), &address.size);
      address.set_port(static_cast<std::uint16_t>(greeting.port));
      socket_of(greeting.rank) = std::move(socket);
    }
    for (int other = 1; other < ranks; ++other) {
      write(other, bytes_of_value(Verdict{}));
      write(other, std::as_bytes(std::span(addresses)));
    }
  }

  // What rank 0 found wrong, in words.
  struct Fault {
    bool is_input = true;  // an InputError; else a LostRank
    std::string problem = {};
    std::string remedy = {};

    [[noreturn]] void raise() const {
      if (is_input) throw InputError(problem, remedy);
      throw LostRank(std::string(operation), problem);
    }
  };

  // Tells all who have come, and throws it here.
  [[noreturn]] void refuse(const Fault& fault, const Socket& last) const {
    const Verdict verdict{.outcome = fault.is_input ? Verdict::input : Verdict::lost,
                          .problem_bytes = static_cast<std::uint32_t>(fault.problem.size()),
                          .remedy_bytes = static_cast<std::uint32_t>(fault.remedy.size())};
    const auto tell = [&](const Socket& socket) {
      if (!socket.is_open()) return;
      const Seconds wait{std::min(longest_greeting.value(), patience.value())};
      const bool told =
          write_all(socket, bytes_of_value(verdict), wait) == End::done &&
          write_all(socket, std::as_bytes(std::span(fault.problem)), wait) == End::done &&
          write_all(socket, std::as_bytes(std::span(fault.remedy)), wait) == End::done;
      static_cast<void>(told);  // who is gone does not ask
    };
    for (const Socket& socket : sockets) tell(socket);
    tell(last);
    fault.raise();
  }
  [[noreturn]] void refuse_absent() const {
    std::vector<int> absent;
    for (int other = 1; other < ranks; ++other) {
      if (!sockets[static_cast<std::size_t>(other)].is_open()) absent.push_back(other);
    }
    refuse(
        {.is_input = false,
         .problem = fmt::format("rank{} {} did not come in {:g} s", absent.size() == 1 ? "" : "s",
                                fmt::join(absent, ", "), patience.value())},
        {});
  }

  void go_to(const Rendezvous& place) {
    Socket socket = find_rank_0(place, deadline());
    addresses.front().size = sizeof addresses.front().storage;
    ::getpeername(socket.get(), addresses.front().get(), &addresses.front().size);
    listener = listen_at(own_address(socket).storage.ss_family, 0);
    socket_of(0) = std::move(socket);
    write(0, bytes_of_value(greeting(0)));
    hear_verdict();
    const Address of_rank_0 = addresses.front();
    read(0, std::as_writable_bytes(std::span(addresses)));
    addresses.front() = of_rank_0;
    std::vector<Connections> made = connect(0, 1, 1);
    for (int other = 1; other < ranks; ++other) {
      if (other != rank) socket_of(other) = std::move(made[0][static_cast<std::size_t>(other)]);
    }
  }

  // Waits for longer than rank 0 does for the others, so that it is rank 0 that says who is missing.
  void hear_verdict() {
    Verdict verdict;
    const Seconds longest{patience.value() + longest_greeting.value()};
    const auto hear = [&](std::span<std::byte> bytes) {
      expect(read_all(socket_of(0), bytes, longest), 0, false);
    };
    hear(writable_bytes_of_value(verdict));
    if (verdict.outcome == Verdict::all_came) return;
    Fault fault{.is_input = verdict.outcome == Verdict::input};
    fault.problem.resize(std::min<std::size_t>(verdict.problem_bytes, longest_text));
    fault.remedy.resize(std::min<std::size_t>(verdict.remedy_bytes, longest_text));
    hear(std::as_writable_bytes(std::span(fault.problem)));
    hear(std::as_writable_bytes(std::span(fault.remedy)));
    fault.raise();
  }

  // Rank 0 may come later than this rank.
  [[nodiscard]] Socket find_rank_0(const Rendezvous& place, Clock::time_point end) const {
    constexpr std::chrono::milliseconds between_tries{20};
    const std::vector<Address> found = resolve(place);
    for (;;) {
      for (const Address& address : found) {
        Socket socket = connect_to(address, patience);
        if (socket.is_open()) return socket;
      }
      if (Clock::now() > end)
        throw LostRank(fmt::format("connect to rank 0 at {} port {}", place.host, place.port),
                       error_text());
      std::this_thread::sleep_for(between_tries);
    }
  }

  [[nodiscard]] Greeting greeting(int lane) const {
    return {.rank = rank, .ranks = ranks, .port = own_address(listener).port(), .lane = lane};
  }

  // Connections with all peers of at least rank `lowest`, in lanes first_lane and on.
  [[nodiscard]] std::vector<Connections> connect(int first_lane, int count, int lowest) {
    std::vector<Connections> made;
    for (int i = 0; i < count; ++i) made.emplace_back(static_cast<std::size_t>(ranks));
    for (int other = lowest; other < rank; ++other) {
      for (int i = 0; i < count; ++i) {
        Socket socket = connect_to(addresses[static_cast<std::size_t>(other)], patience);
        if (!socket.is_open())
          throw LostRank(fmt::format("connect to rank {}", other), error_text());
        expect(write_all(socket, bytes_of_value(greeting(first_lane + i)), patience), other, true);
        made[static_cast<std::size_t>(i)][static_cast<std::size_t>(other)] = std::move(socket);
      }
    }
    const Clock::time_point end = deadline();
    for (int missing = (ranks - 1 - std::max(rank, lowest - 1)) * count; missing > 0;) {
      auto came = accept(end);
      if (!came)
        throw LostRank(std::string(operation),
                       fmt::format("a rank did not connect in {:g} s", patience.value()));
      auto& [greeting, socket] = *came;
      const int lane = greeting.lane - first_lane;
      if (greeting.ranks != ranks || greeting.rank <= rank || greeting.rank >= ranks || lane < 0 ||
          lane >= count)
        continue;  // of another job, or one that was started twice
      Socket& place = made[static_cast<std::size_t>(lane)][static_cast<std::size_t>(greeting.rank)];
      if (place.is_open()) continue;
      place = std::move(socket);
      --missing;
    }
    return made;
  }

  [[nodiscard]] Socket& socket_of(int peer) { return sockets[static_cast<std::size_t>(peer)]; }
  void expect(End end, int peer, bool sends) const {
    if (end == End::gone) throw_lost(peer, sends, "it is gone");
    if (end == End::silent)
      throw_lost(peer, sends, fmt::format("nothing came from it for {:g} s", patience.value()));
  }
  void write(int to, std::span<const std::byte> bytes) {
    expect(write_all(socket_of(to), bytes, patience), to, true);
  }
  void read(int from, std::span<std::byte> bytes) {
    expect(read_all(socket_of(from), bytes, patience), from, false);
  }

  int rank = 0;
  int ranks = 1;
  Seconds patience;
  int lanes = 1;  // made so far
  Socket listener;
  Connections sockets;
  std::vector<Address> addresses;  // by rank: where each listens
};

Meeting::Meeting(const Rendezvous& rendezvous, int rank, int ranks, Seconds patience)
    : state_(std::make_unique<State>(rendezvous, rank, ranks, patience)) {}

Meeting::~Meeting() = default;

Connections Meeting::first() {
  return std::move(state_->sockets);
}

std::vector<Connections> Meeting::more(int count) {
  std::vector<Connections> made = state_->connect(state_->lanes, count, 0);
  state_->lanes += count;
  return made;
}

void Meeting::close() {
  state_->listener = {};
}

}  // namespace tcp
}  // namespace paceline::runtime

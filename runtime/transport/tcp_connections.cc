// Tests: tests/runtime/channel/tcp_channel_test.cc, tests/runtime/channel/tcp_strangers_test.cc.
//
// IMPLEMENTATION. Rank i calls the ranks before it and is called by those behind it, both in one loop,
// so that no order of the ranks can deadlock. Machines are assumed to have one byte order.
#include "runtime/transport/tcp_connections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "runtime/transport/lost_rank.h"
#include "runtime/transport/tcp_address.h"
#include "runtime/transport/tcp_introductions.h"

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

constexpr std::string_view operation = "start the job";
// How much longer than rank 0 the others wait for its verdict, so that it is rank 0 that says who is
// missing.
constexpr Seconds longer_than_rank_0{5};
// How long rank 0 takes at most to tell a rank of a failure.
constexpr Seconds longest_farewell{5};

// What rank 0 says to those who have come. Where something is wrong, a text follows; else what the
// ranks have in common from now on, and the addresses of all.
struct Verdict {
  enum : std::uint32_t { all_came, lost };
  std::uint32_t outcome = all_came;
  std::uint32_t problem_bytes = 0;
};
constexpr std::size_t longest_text = 1 << 16;

template <class T>
std::span<const std::byte> bytes_of_value(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
std::span<std::byte> writable_bytes_of_value(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

void refuse_without_secret(const Rendezvous& place, const std::vector<Address>& addresses) {
  const auto beyond = std::ranges::find_if(
      addresses, [](const Address& address) { return !address.is_loopback(); });
  if (beyond == addresses.end()) return;
  throw InputError(
      fmt::format("{} is reached beyond this machine, and the job has no secret", place.host),
      fmt::format("make one, and set it on all ranks: {}=$(openssl rand -hex 32)",
                  std::string_view(secret_variable)));
}

RunError cannot_listen(const Address& address) {
  const int error = errno;
  return RunError(fmt::format("listen at {} port {}", host_text(address), address.port()),
                  error == EADDRNOTAVAIL
                      ? std::string("it is no address of this machine, on which rank 0 runs")
                      : std::string(std::strerror(error)));
}

// At all addresses of the rendezvous that this machine has.
std::vector<Socket> listen_at_all(const std::vector<Address>& addresses) {
  std::vector<Socket> listeners;
  for (const Address& address : addresses) {
    Socket listener = listen_at(address);
    if (listener.is_open()) {
      listeners.push_back(std::move(listener));
    } else if (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT) {
      throw cannot_listen(address);
    }
  }
  if (listeners.empty()) throw cannot_listen(addresses.front());
  return listeners;
}

}  // namespace

struct Meeting::State {
  State(const Rendezvous& place, const JobIdentity& identity, int r, int n, Seconds p)
      : description(identity.description), patience(p), sockets(to_size(n)), addresses(to_size(n)) {
    self.rank = r;
    self.ranks = n;
    if (n == 1) return;
    const std::vector<Address> found = resolve(place.host, place.port);
    if (!identity.secret.is_set()) refuse_without_secret(place, found);
    self.has_secret = identity.secret.is_set();
    self.job = digest_of(description);
    self.key = meeting_key(identity.secret.text());
    if (r == 0)
      gather_all(found);
    else
      go_to(place, found);
  }

  // Rank 0: all come to it, and it tells all where the others listen.
  void gather_all(const std::vector<Address>& found) {
    listeners = listen_at_all(found);
    Introductions introductions(
        self, listeners, description,
        {.admit = [this](const Hello& caller) { return outcome_of(caller); },
         .take = [this](const Hello& caller, Socket socket) { take(caller, std::move(socket)); }},
        patience);
    const Clock::time_point end = after(patience);
    for (;;) {
      introductions.step(end);
      if (have_all_come()) break;
      if (Clock::now() >= end) refuse_absent(introductions.refused_text());
    }
    const Digest told = random_digest();
    self.peer_key = peer_key(self.key, told);
    for (int other = 1; other < self.ranks; ++other) {
      write(other, bytes_of_value(Verdict{}));
      write(other, told);
      write(other, std::as_bytes(std::span(addresses)));
    }
  }

  // What rank 0 answers who has proved to know the key of meetings.
  [[nodiscard]] Outcome outcome_of(const Hello& caller) {
    if (caller.ranks != self.ranks) return Outcome::other_ranks;
    if (caller.job != self.job) return Outcome::other_job;
    const bool has_begun = self.peer_key.has_value();
    const Socket& place = socket_of(caller.rank);
    return has_begun || (place.is_open() && !place.is_gone()) ? Outcome::came_twice
                                                              : Outcome::welcome;
  }
  void take(const Hello& caller, Socket socket) {
    Address& address = addresses[to_size(caller.rank)];
    address = peer_address(socket);
    address.set_port(static_cast<std::uint16_t>(caller.port));
    socket_of(caller.rank) = std::move(socket);
  }

  // Ranks that have left again do not count.
  [[nodiscard]] bool have_all_come() {
    const auto others = std::span(sockets).subspan(1);
    if (!std::ranges::all_of(others, &Socket::is_open)) return false;
    for (Socket& socket : others) {
      if (socket.is_gone()) socket = Socket();
    }
    return std::ranges::all_of(others, &Socket::is_open);
  }

  // Tells all who have come, and throws it here.
  [[noreturn]] void refuse_absent(const std::string& refused) {
    std::vector<int> absent;
    for (int other = 1; other < self.ranks; ++other) {
      if (!socket_of(other).is_open()) absent.push_back(other);
    }
    const std::string problem =
        fmt::format("rank{} {} did not come in {:g} s{}", absent.size() == 1 ? "" : "s",
                    fmt::join(absent, ", "), patience.value(), refused);
    const Verdict verdict{.outcome = Verdict::lost,
                          .problem_bytes = static_cast<std::uint32_t>(problem.size())};
    const Seconds wait{std::min(longest_farewell.value(), patience.value())};
    for (const Socket& socket : sockets) {
      if (!socket.is_open()) continue;
      const bool told = write_all(socket, bytes_of_value(verdict), wait) == End::done &&
                        write_all(socket, std::as_bytes(std::span(problem)), wait) == End::done;
      static_cast<void>(told);  // who is gone does not ask
    }
    throw LostRank(std::string(operation), problem);
  }

  void go_to(const Rendezvous& place, const std::vector<Address>& found) {
    call_rank_0(place, found);
    hear_verdict();
    std::vector<Connections> made = connect(0, 1, 1);
    for (int other = 1; other < self.ranks; ++other) {
      if (other != self.rank) socket_of(other) = std::move(made[0][to_size(other)]);
    }
  }

  // Rank 0 may come later than this rank. The others reach this one at the address by which it
  // reaches rank 0.
  void call_rank_0(const Rendezvous& place, const std::vector<Address>& found) {
    const std::vector<Socket> nobody_calls;
    Introductions introductions(self, nobody_calls, description, {}, patience);
    introductions.call(
        {.to = 0,
         .places = found,
         .what = fmt::format("connect to rank 0 at {} port {}", place.host, place.port),
         .listen = [this](const Address& own) { return listen_beside(own); }},
        [this](Socket socket) { socket_of(0) = std::move(socket); });
    for (const Clock::time_point end = after(patience); !socket_of(0).is_open();) {
      if (Clock::now() >= end) introductions.expect_calls_made();
      introductions.step(end);
    }
  }
  std::uint16_t listen_beside(Address own) {
    own.set_port(0);
    listeners.clear();
    listeners.push_back(listen_at(own));
    if (!listeners.front().is_open()) throw cannot_listen(own);
    return own_address(listeners.front()).port();
  }

  // Waits for longer than rank 0 does for the others.
  void hear_verdict() {
    const Seconds longest{patience.value() + longer_than_rank_0.value()};
    const auto hear = [&](std::span<std::byte> bytes) {
      expect(read_all(socket_of(0), bytes, longest), 0, false);
    };
    Verdict verdict;
    hear(writable_bytes_of_value(verdict));
    if (verdict.outcome != Verdict::all_came) {
      std::string problem(std::min<std::size_t>(verdict.problem_bytes, longest_text), '\0');
      hear(std::as_writable_bytes(std::span(problem)));
      throw LostRank(std::string(operation), problem);
    }
    Digest told;
    hear(told);
    hear(std::as_writable_bytes(std::span(addresses)));
    self.peer_key = peer_key(self.key, told);
    addresses.front() = peer_address(socket_of(0));
    if (!std::ranges::all_of(addresses, &Address::is_valid))
      throw RunError(std::string(operation), "rank 0 says no address of a rank");
  }

  // Connections with all peers of at least rank `lowest`, in lanes first_lane and on.
  [[nodiscard]] std::vector<Connections> connect(int first_lane, int count, int lowest) {
    std::vector<Connections> made;
    for (int i = 0; i < count; ++i) made.emplace_back(to_size(self.ranks));
    const auto place_of = [&](int lane, int other) -> Socket& {
      return made[to_size(lane - first_lane)][to_size(other)];
    };
    int missing = (self.ranks - 1 - (lowest == 0 ? 0 : 1)) * count;
    const auto put = [&](int lane, int other, Socket socket) {
      Socket& place = place_of(lane, other);
      if (!place.is_open()) --missing;
      place = std::move(socket);
    };
    const auto admit = [&](const Hello& caller) {
      if (caller.purpose == Purpose::meeting) return outcome_of(caller);
      if (caller.lane >= first_lane + count) return Outcome::not_yet;
      const bool is_called =
          caller.rank > self.rank && caller.rank < self.ranks && caller.lane >= first_lane;
      if (!is_called) return Outcome::came_twice;
      const Socket& place = place_of(caller.lane, caller.rank);
      return place.is_open() && !place.is_gone() ? Outcome::came_twice : Outcome::welcome;
    };
    Introductions introductions(
        self, listeners, description,
        {.admit = admit,
         .take = [&](const Hello& caller,
                     Socket socket) { put(caller.lane, caller.rank, std::move(socket)); }},
        patience);
    for (int other = lowest; other < self.rank; ++other) {
      for (int lane = first_lane; lane < first_lane + count; ++lane)
        introductions.call(
            {.to = other,
             .lane = lane,
             .purpose = Purpose::peer,
             .places = {addresses[to_size(other)]},
             .what = fmt::format("connect to rank {}", other)},
            [&put, lane, other](Socket socket) { put(lane, other, std::move(socket)); });
    }
    for (const Clock::time_point end = after(patience); missing > 0;) {
      if (Clock::now() >= end) {
        introductions.expect_calls_made();
        refuse_unconnected(made, introductions.refused_text());
      }
      introductions.step(end);
    }
    return made;
  }
  [[noreturn]] void refuse_unconnected(const std::vector<Connections>& made,
                                       const std::string& refused) const {
    std::vector<int> absent;
    for (int other = self.rank + 1; other < self.ranks; ++other) {
      const auto is_absent = [other](const Connections& lane) {
        return !lane[to_size(other)].is_open();
      };
      if (std::ranges::any_of(made, is_absent)) absent.push_back(other);
    }
    throw LostRank(
        std::string(operation),
        fmt::format("rank{} {} did not connect in {:g} s{}", absent.size() == 1 ? "" : "s",
                    fmt::join(absent, ", "), patience.value(), refused));
  }

  [[nodiscard]] Socket& socket_of(int peer) { return sockets[to_size(peer)]; }
  void expect(End end, int peer, bool sends) const {
    if (end == End::gone) throw_lost(peer, sends, "it is gone");
    if (end == End::silent)
      throw_lost(peer, sends, fmt::format("nothing came from it for {:g} s", patience.value()));
  }
  void write(int to, std::span<const std::byte> bytes) {
    expect(write_all(socket_of(to), bytes, patience), to, true);
  }

  std::string description;
  Seconds patience;
  Member self;
  int lanes = 1;  // made so far
  std::vector<Socket> listeners;
  Connections sockets;
  std::vector<Address> addresses;  // by rank: where each listens
};

Meeting::Meeting(const Rendezvous& rendezvous, const JobIdentity& job, int rank, int ranks,
                 Seconds patience)
    : state_(std::make_unique<State>(rendezvous, job, rank, ranks, patience)) {}

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
  state_->listeners.clear();
}

}  // namespace tcp
}  // namespace paceline::runtime

// Tests: tests/runtime/channel/tcp_strangers_test.cc, tests/runtime/channel/tcp_channel_test.cc.
//
// IMPLEMENTATION. Invariants: (1) one poll() waits for all; no read or write waits. (2) All handshakes
// of callers have the same length of time, so that the oldest is the first in the list and the first
// that is late. (3) A connection leaves this class when both sides have given their proofs, or is
// closed.
#include "runtime/transport/tcp_introductions.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "models/base/error.h"
#include "models/base/first_difference.h"
#include "models/base/to_size.h"
#include "runtime/transport/lost_rank.h"
#include "runtime/transport/rendezvous_secret.h"

namespace paceline::runtime::tcp {
namespace {

constexpr std::chrono::milliseconds between_tries{20};
// Accepted in one step from one listener, so that those who were accepted before are served in time.
constexpr int accepted_at_once = 16;
constexpr std::string_view same_version = "start all ranks with the same version of Paceline";

short events_of(bool reads, bool writes) {
  return static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
}

// Sends what can be sent at once. Returns whether the other end is still there.
bool send_some(const Socket& socket, Handshake& shake) {
  while (!shake.unsent().empty()) {
    const int sent = write_some(socket, shake.unsent());
    if (sent < 0) return false;
    if (sent == 0) break;
    shake.sent(to_size(sent));
  }
  return true;
}

// From the one side of a connection to the other, which are one socket: the system chose as its own
// port the one that it connects to.
bool is_connected_to_itself(const Socket& socket) {
  const Address own = own_address(socket);
  const Address peer = peer_address(socket);
  return own.port() == peer.port() && host_text(own) == host_text(peer);
}

}  // namespace

struct Introductions::Incoming {
  Incoming(Socket s, const Member& self, Clock::time_point e)
      : socket(std::move(s)), shake(self, random_digest()), end(e) {}

  Socket socket;
  Acceptor shake;
  Clock::time_point end;
  bool drains = false;  // it was told why it is refused, and is to close the connection
  bool ended = false;

  [[nodiscard]] bool reads() { return drains || !shake.room().empty(); }
  [[nodiscard]] bool writes() const { return !shake.unsent().empty(); }
};

struct Introductions::Outgoing {
  Call call;
  std::function<void(Socket)> made;
  std::size_t tries = 0;
  Socket socket = {};
  std::unique_ptr<Caller> shake = {};  // once it is connected
  Clock::time_point end = {};          // of this try; of the pause before it, without a socket
  std::string why = {};                // the last try failed
  bool was_answered = false;           // and who listens there is why
  bool ended = false;

  [[nodiscard]] bool reads() const { return shake && !shake->room().empty(); }
  [[nodiscard]] bool writes() const { return !shake || !shake->unsent().empty(); }
};

// How many callers were refused, and why the last one of the most telling kind.
struct Introductions::Refusals {
  int count = 0;
  bool is_of_rank = false;
  std::string why = {};

  void add(bool by_rank, std::string reason) {
    ++count;
    if (is_of_rank && !by_rank) return;
    is_of_rank = by_rank;
    why = std::move(reason);
  }
};

Introductions::Introductions(const Member& self, const std::vector<Socket>& listeners,
                             std::string_view description, Reception reception, Seconds patience)
    : self_(self),
      listeners_(listeners),
      description_(description),
      reception_(std::move(reception)),
      longest_(std::min(longest_handshake, patience)),
      refusals_(std::make_unique<Refusals>()) {}

Introductions::~Introductions() = default;

Clock::time_point Introductions::handshake_end() const {
  return after(longest_);
}

void Introductions::call(Call call, std::function<void(Socket)> made) {
  outgoing_.push_back(
      std::make_unique<Outgoing>(Outgoing{.call = std::move(call), .made = std::move(made)}));
  begin(*outgoing_.back());
}

void Introductions::step(Clock::time_point end) {
  std::vector<pollfd> polled;
  for (const Socket& listener : listeners_) polled.push_back({listener.get(), POLLIN, 0});
  for (const auto& each : incoming_)
    polled.push_back({each->socket.get(), events_of(each->reads(), each->writes()), 0});
  if (!incoming_.empty()) end = std::min(end, incoming_.front()->end);
  for (const auto& each : outgoing_) {
    polled.push_back({each->socket.get(), events_of(each->reads(), each->writes()), 0});
    end = std::min(end, each->end);
  }
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
  if (::poll(polled.data(), polled.size(),
             static_cast<int>(std::clamp<long>(left + 1, 0, 60'000))) < 0)
    for (pollfd& each : polled) each.revents = 0;

  auto found = polled.begin() + static_cast<std::ptrdiff_t>(listeners_.size());
  for (const auto& each : incoming_) {
    if ((found++)->revents != 0) serve(*each);
  }
  for (const auto& each : outgoing_) {
    const bool is_ready = (found++)->revents != 0;
    if (is_ready || Clock::now() >= each->end) go_on(*each);
  }
  accept_some();
  drop_late();
  std::erase_if(incoming_, [](const auto& each) { return each->ended; });
  std::erase_if(outgoing_, [](const auto& each) { return each->ended; });
}

void Introductions::refuse(Incoming& incoming, Fault fault) {
  const Hello& caller = incoming.shake.caller();
  switch (fault) {
    case Fault::other_protocol:
      return refusals_->add(true, fmt::format("it speaks protocol {}, and this rank protocol {}",
                                              incoming.shake.spoken_protocol(), protocol));
    case Fault::no_secret:
      return refusals_->add(true, self_.has_secret ? "it has no secret" : "it has a secret");
    case Fault::no_proof:
      return refusals_->add(true, self_.has_secret ? "it has another secret"
                                                   : "it has given no proof to be of this job");
    case Fault::impossible:
      return refusals_->add(
          false, fmt::format("it says that it is rank {} of {}", caller.rank, caller.ranks));
    case Fault::foreign:
      return refusals_->add(false, "it speaks no protocol of Paceline");
    case Fault::none:
    case Fault::refused:
      return refusals_->add(false, "it has left");
  }
}

void Introductions::serve(Incoming& incoming) {
  std::array<std::byte, 512> scratch{};
  while (!incoming.ended) {
    Acceptor& shake = incoming.shake;
    if (!send_some(incoming.socket, shake)) {
      incoming.ended = true;
      if (!incoming.drains) refuse(incoming, Fault::none);
      return;
    }
    const std::span<std::byte> room =
        incoming.drains ? std::span<std::byte>(scratch) : shake.room();
    if (room.empty()) return;
    const int got = read_some(incoming.socket, room);
    if (got == 0) return;
    if (got < 0) {
      incoming.ended = true;
      if (!incoming.drains) refuse(incoming, Fault::none);
      return;
    }
    if (incoming.drains) continue;
    shake.came(to_size(got));
    if (shake.fault() != Fault::none) {
      refuse(incoming, shake.fault());
      incoming.drains = !shake.unsent().empty();
      incoming.ended = !incoming.drains;
    } else if (shake.has_proof()) {
      decide(incoming);
    }
  }
}

void Introductions::decide(Incoming& incoming) {
  const Hello caller = incoming.shake.caller();
  const Outcome outcome = reception_.admit(caller);
  incoming.shake.answer(outcome, outcome == Outcome::other_job ? description_ : "");
  if (outcome != Outcome::welcome) {
    if (outcome != Outcome::not_yet)
      refusals_->add(true, outcome == Outcome::came_twice
                               ? fmt::format("there is a rank {} already", caller.rank)
                           : outcome == Outcome::other_ranks
                               ? fmt::format("it was started for {} ranks", caller.ranks)
                               : "it is of another job");
    incoming.drains = true;
    return;
  }
  incoming.ended = true;
  // The buffers of a connection on which little was said have room for it.
  if (send_some(incoming.socket, incoming.shake) && incoming.shake.unsent().empty())
    reception_.take(caller, std::move(incoming.socket));
}

void Introductions::make_room() {
  const auto oldest =
      std::ranges::find_if(incoming_, [](const auto& each) { return !each->ended; });
  if (oldest == incoming_.end()) return;
  if (!(*oldest)->drains) refusals_->add(false, "too many called at once");
  incoming_.erase(oldest);
}

void Introductions::accept_some() {
  for (const Socket& listener : listeners_) {
    for (int i = 0; i < accepted_at_once; ++i) {
      Socket socket = accept_from(listener);
      if (!socket.is_open()) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) break;
        if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) continue;
        // No more descriptors: who has greeted for the longest gives back one.
        if (incoming_.empty()) std::this_thread::sleep_for(between_tries);
        make_room();
        break;
      }
      if (incoming_.size() >= most_unfinished) make_room();
      incoming_.push_back(std::make_unique<Incoming>(std::move(socket), self_, handshake_end()));
      serve(*incoming_.back());
    }
  }
}

void Introductions::drop_late() {
  const Clock::time_point now = Clock::now();
  for (const auto& each : incoming_) {
    if (each->ended || each->end > now) continue;
    each->ended = true;
    if (!each->drains)
      refusals_->add(false, fmt::format("it did not greet in {:g} s", longest_.value()));
  }
}

void Introductions::begin(Outgoing& outgoing) {
  const std::vector<Address>& places = outgoing.call.places;
  outgoing.shake = nullptr;
  outgoing.socket = begin_connection(places[outgoing.tries++ % places.size()]);
  outgoing.end = handshake_end();
  if (!outgoing.socket.is_open()) miss(outgoing, errno);
}

void Introductions::miss(Outgoing& outgoing, int error) {
  // A peer that has met this rank was there before.
  if (error == ECONNREFUSED && outgoing.call.purpose == Purpose::peer)
    throw LostRank(outgoing.call.what, std::strerror(error));
  try_again(outgoing, std::strerror(error));
}

void Introductions::try_again(Outgoing& outgoing, const std::string& why) {
  const bool is_answer = outgoing.shake != nullptr;
  if (is_answer || !outgoing.was_answered) outgoing.why = why;
  outgoing.was_answered = outgoing.was_answered || is_answer;
  outgoing.shake = nullptr;
  outgoing.socket = Socket();
  outgoing.end = Clock::now() + between_tries;
}

void Introductions::go_on(Outgoing& outgoing) {
  const bool is_late = Clock::now() >= outgoing.end;
  if (!outgoing.socket.is_open()) {
    if (is_late) begin(outgoing);
    return;
  }
  if (!outgoing.shake) {
    pollfd waited{outgoing.socket.get(), POLLOUT, 0};
    if (::poll(&waited, 1, 0) <= 0)
      return is_late ? try_again(outgoing, std::strerror(ETIMEDOUT)) : void();
    int error = connection_error(outgoing.socket);
    if (error == 0 && is_connected_to_itself(outgoing.socket)) error = ECONNREFUSED;
    if (error != 0) return miss(outgoing, error);
    const Call& call = outgoing.call;
    const std::uint16_t port = call.listen ? call.listen(own_address(outgoing.socket)) : 0;
    outgoing.shake = std::make_unique<Caller>(
        self_, Hello{.to = call.to, .lane = call.lane, .port = port, .purpose = call.purpose},
        random_digest());
  }
  exchange(outgoing);
  if (is_late && !outgoing.ended && outgoing.shake)
    try_again(outgoing,
              fmt::format("what listens there does not answer as a rank does within {:g} s",
                          longest_.value()));
}

void Introductions::exchange(Outgoing& outgoing) {
  Caller& shake = *outgoing.shake;
  for (;;) {
    const bool is_there = send_some(outgoing.socket, shake);
    const int got = is_there ? read_some(outgoing.socket, shake.room()) : -1;
    if (got == 0) return;
    if (got < 0) return try_again(outgoing, "what listens there has closed the connection");
    shake.came(to_size(got));
    if (shake.is_welcome()) {
      outgoing.ended = true;
      outgoing.made(std::move(outgoing.socket));
      return;
    }
    if (shake.fault() == Fault::none) continue;
    const bool is_early = shake.fault() == Fault::refused && shake.outcome() == Outcome::not_yet;
    if (is_early) return try_again(outgoing, "it is not ready for that");
    const bool is_strange = shake.fault() == Fault::foreign || shake.fault() == Fault::impossible ||
                            (shake.fault() == Fault::no_proof && !self_.has_secret);
    if (is_strange || outgoing.call.purpose == Purpose::peer)
      return try_again(outgoing,
                       fmt::format("what listens there is no rank {} of this job: it does "
                                   "not answer as one does",
                                   outgoing.call.to));
    raise_refusal(outgoing);
  }
}

void Introductions::raise_refusal(const Outgoing& outgoing) const {
  const Caller& shake = *outgoing.shake;
  const int to = outgoing.call.to;
  const std::string same_secret =
      fmt::format("give all ranks the same {}", std::string_view(secret_variable));
  if (shake.fault() == Fault::other_protocol)
    throw InputError(fmt::format("rank {} speaks protocol {}, and this rank protocol {}", to,
                                 shake.spoken_protocol(), protocol),
                     std::string(same_version));
  if (shake.fault() == Fault::no_secret)
    throw InputError(self_.has_secret
                         ? fmt::format("rank {} has no secret, and this rank has one", to)
                         : fmt::format("rank {} has a secret, and this rank has none", to),
                     same_secret);
  if (shake.fault() == Fault::no_proof)
    throw InputError(fmt::format("rank {} has another secret than this rank", to), same_secret);
  PACELINE_ASSERT(shake.fault() == Fault::refused, "all else is tried again");
  if (shake.outcome() == Outcome::other_ranks)
    throw InputError(fmt::format("rank {} was started for {} ranks, and rank {} for {}", self_.rank,
                                 self_.ranks, to, shake.acceptor().ranks),
                     "start all with the same --ranks");
  if (shake.outcome() == Outcome::came_twice)
    throw InputError(fmt::format("two processes say that they are rank {}", self_.rank),
                     fmt::format("give each one of the ranks 0 to {}", self_.ranks - 1));
  const auto [ours, theirs] = first_difference(description_, shake.text());
  throw InputError(
      shake.text().empty()
          ? fmt::format("rank {} is of another job than rank {}", self_.rank, to)
          : fmt::format("rank {} has \"{}\", and rank {} \"{}\"", self_.rank, ours, to, theirs),
      "start all ranks with the same options");
}

void Introductions::expect_calls_made() const {
  if (outgoing_.empty()) return;
  const Outgoing& first = *outgoing_.front();
  throw LostRank(first.call.what, first.why.empty() ? "it did not answer" : first.why);
}

std::string Introductions::refused_text() const {
  if (refusals_->count == 0) return {};
  return fmt::format("; {} connection{} refused, {}because {}", refusals_->count,
                     refusals_->count == 1 ? " was" : "s were",
                     refusals_->count == 1 ? "" : "one of them ", refusals_->why);
}

}  // namespace paceline::runtime::tcp

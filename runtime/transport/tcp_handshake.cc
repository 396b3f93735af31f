// Tests: tests/runtime/channel/tcp_handshake_test.cc.
//
// IMPLEMENTATION. Machines are assumed to have one byte order, so that what is said is the memory of a
// struct without padding.
#include "runtime/transport/tcp_handshake.h"

#include <algorithm>
#include <type_traits>

#include "models/base/error.h"

namespace paceline::runtime::tcp {
namespace {

static_assert(std::has_unique_object_representations_v<Hello> && sizeof(Hello) == 104);
static_assert(std::has_unique_object_representations_v<Challenge> && sizeof(Challenge) == 120);
static_assert(std::has_unique_object_representations_v<Answer> && sizeof(Answer) == 8);

constexpr std::string_view of_acceptor = "paceline rendezvous 3: acceptor";
constexpr std::string_view of_caller = "paceline rendezvous 3: caller";
constexpr std::string_view of_meeting = "paceline rendezvous 3: key of the meeting";
constexpr std::string_view of_peers = "paceline rendezvous 3: key of the peers";

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
std::span<std::byte> room_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

Digest proof_of(const Digest& key, std::string_view side, const Hello& hello,
                const Challenge& challenge) {
  constexpr std::size_t before_proof = sizeof challenge - sizeof challenge.proof;
  return keyed_digest(key, side, {bytes_of(hello), bytes_of(challenge).first(before_proof)});
}

// What a rank that speaks protocol 2 reads as the verdict of rank 0, in the same words as its own.
struct OlderVerdict {
  std::uint32_t outcome = 1;  // wrong input
  std::uint32_t problem_bytes = 0;
  std::uint32_t remedy_bytes = 0;
};
constexpr std::string_view older_problem = "this rank speaks protocol 2, and rank 0 protocol 3";
constexpr std::string_view older_remedy = "start all ranks with the same version of Paceline";

bool is_possible(const Hello& hello, const Member& self) {
  return hello.rank >= 0 && hello.rank < hello.ranks && hello.rank != self.rank &&
         hello.to == self.rank && hello.lane >= 0 && hello.port <= 0xffff &&
         hello.has_secret <= 1 && hello.unused == 0 && self.key_of(hello.purpose) != nullptr;
}

}  // namespace

std::optional<int> protocol_in(std::uint64_t spoken) {
  const int number = static_cast<int>(spoken & 0xff) - '0';
  if (number < 1 || spoken != spoken_in(number)) return std::nullopt;
  return number;
}

const Digest* Member::key_of(Purpose purpose) const {
  if (purpose == Purpose::meeting) return &key;
  return purpose == Purpose::peer && peer_key ? &*peer_key : nullptr;
}

Digest meeting_key(std::string_view secret) {
  return keyed_digest(std::as_bytes(std::span(secret)), of_meeting, {});
}

Digest peer_key(const Digest& meeting_key, const Digest& told) {
  return keyed_digest(meeting_key, of_peers, {told});
}

std::span<std::byte> Handshake::room() {
  return room_.subspan(filled_);
}

std::span<const std::byte> Handshake::unsent() const {
  return std::as_bytes(std::span(unsent_)).subspan(sent_);
}

void Handshake::sent(std::size_t bytes) {
  sent_ += bytes;
  PACELINE_ASSERT(sent_ <= unsent_.size(), "what is sent was said");
}

void Handshake::expect(std::span<std::byte> room) {
  room_ = room;
  filled_ = 0;
}

bool Handshake::fills(std::size_t bytes) {
  filled_ += bytes;
  PACELINE_ASSERT(filled_ <= room_.size(), "what comes has room");
  return filled_ == room_.size();
}

void Handshake::say(std::span<const std::byte> bytes) {
  unsent_.erase(0, sent_);
  sent_ = 0;
  unsent_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void Handshake::fail(Fault fault) {
  fault_ = fault;
  expect({});
}

bool Handshake::knows_protocol(std::uint64_t spoken) {
  const std::optional<int> number = protocol_in(spoken);
  if (!number) {
    fail(Fault::foreign);
    return false;
  }
  spoken_protocol_ = *number;
  if (*number == protocol) return true;
  fail(Fault::other_protocol);
  return false;
}

Acceptor::Acceptor(const Member& self, const Digest& nonce) : self_(self) {
  challenge_ = {.rank = self.rank,
                .ranks = self.ranks,
                .has_secret = self.has_secret ? 1U : 0U,
                .nonce = nonce,
                .job = self.job};
  expect(room_of(hello_));
}

void Acceptor::came(std::size_t bytes) {
  const bool is_whole = fills(bytes);
  if (step_ == Step::greeting && filled() >= sizeof hello_.spoken &&
      !knows_protocol(hello_.spoken)) {
    if (fault() != Fault::other_protocol) return;
    if (spoken_protocol() == 2) {
      say(bytes_of(OlderVerdict{.problem_bytes = older_problem.size(),
                                .remedy_bytes = older_remedy.size()}));
      say(std::as_bytes(std::span(older_problem)));
      say(std::as_bytes(std::span(older_remedy)));
    } else {
      say(bytes_of(challenge_.spoken));
    }
    return;
  }
  if (!is_whole) return;
  if (step_ == Step::greeting)
    take_hello();
  else
    take_proof();
}

void Acceptor::take_hello() {
  if (!is_possible(hello_, self_)) return fail(Fault::impossible);
  challenge_.proof = proof_of(*self_.key_of(hello_.purpose), of_acceptor, hello_, challenge_);
  say(bytes_of(challenge_));
  step_ = Step::proving;
  expect(room_of(proof_));
}

void Acceptor::take_proof() {
  if (hello_.has_secret != challenge_.has_secret) return fail(Fault::no_secret);
  const Digest right = proof_of(*self_.key_of(hello_.purpose), of_caller, hello_, challenge_);
  if (!are_equal(proof_, right)) return fail(Fault::no_proof);
  step_ = Step::proved;
  expect({});
}

void Acceptor::answer(Outcome outcome, std::string_view text) {
  PACELINE_ASSERT(step_ == Step::proved, "who has given no proof gets no answer");
  if (text.size() > longest_description) text = {};
  say(bytes_of(Answer{.outcome = outcome, .text_bytes = static_cast<std::uint32_t>(text.size())}));
  say(std::as_bytes(std::span(text)));
  step_ = Step::answered;
}

Caller::Caller(const Member& self, const Hello& hello, const Digest& nonce)
    : self_(self), hello_(hello) {
  hello_.rank = self.rank;
  hello_.ranks = self.ranks;
  hello_.has_secret = self.has_secret ? 1U : 0U;
  hello_.nonce = nonce;
  hello_.job = self.job;
  PACELINE_ASSERT(self.key_of(hello.purpose) != nullptr, "peers are called once ranks have met");
  say(bytes_of(hello_));
  expect(room_of(challenge_));
}

void Caller::came(std::size_t bytes) {
  const bool is_whole = fills(bytes);
  if (step_ == Step::greeting && filled() >= sizeof challenge_.spoken &&
      !knows_protocol(challenge_.spoken))
    return;
  if (!is_whole) return;
  if (step_ == Step::greeting) {
    take_challenge();
  } else if (step_ == Step::proving) {
    take_answer();
  } else {
    step_ = Step::refused;
    fail(Fault::refused);
  }
}

void Caller::take_challenge() {
  if (challenge_.rank != hello_.to || challenge_.ranks <= challenge_.rank ||
      challenge_.has_secret > 1 || challenge_.unused != 0)
    return fail(Fault::impossible);
  if (challenge_.has_secret != hello_.has_secret) return fail(Fault::no_secret);
  const Digest& key = *self_.key_of(hello_.purpose);
  if (!are_equal(challenge_.proof, proof_of(key, of_acceptor, hello_, challenge_)))
    return fail(Fault::no_proof);
  say(proof_of(key, of_caller, hello_, challenge_));
  step_ = Step::proving;
  expect(room_of(answer_));
}

void Caller::take_answer() {
  if (answer_.outcome > Outcome::not_yet || answer_.text_bytes > longest_description ||
      (answer_.outcome != Outcome::other_job && answer_.text_bytes > 0))
    return fail(Fault::impossible);
  if (answer_.outcome == Outcome::welcome) {
    step_ = Step::welcome;
    return expect({});
  }
  step_ = Step::reading;
  text_.resize(answer_.text_bytes);
  if (text_.empty()) {
    step_ = Step::refused;
    return fail(Fault::refused);
  }
  expect(std::as_writable_bytes(std::span(text_)));
}

}  // namespace paceline::runtime::tcp

// The handshake by which two processes find that they are ranks of one job: what they say, as bytes
// that come and go. There is no socket and no clock in it.
//
//   caller   -> acceptor  Hello      protocol, rank, ranks, job, a nonce
//   acceptor -> caller    Challenge  the same of the acceptor, and its proof
//   caller   -> acceptor  Proof
//   acceptor -> caller    Answer     welcome, or why not
//
// A proof is a keyed digest (job_proof.h) of Hello and Challenge, nonces of both sides in them, for one
// direction: a recorded one is none on another connection, and one that is sent back is none for the
// other direction. The key is made of the job's secret; of nothing where there is none, and then it
// tells jobs apart and keeps nobody out. Between ranks that rank 0 has welcomed, the key is made also
// of what rank 0 has told those alone.
//
// Nothing is allocated for what a stranger says, except for a text of Answer from who has given a proof.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/transport/job_proof.h"

namespace paceline::runtime::tcp {

// The protocol that this version of Paceline speaks.
inline constexpr int protocol = 3;

// The first 8 bytes of both sides, in every protocol: "PCLNTCP" and the protocol's number behind it,
// a character from '1' on.
[[nodiscard]] constexpr std::uint64_t spoken_in(int version) {
  return (std::uint64_t{0x50434c4e544350} << 8) | static_cast<std::uint64_t>('0' + version);
}
// The protocol that these 8 bytes are of; nothing if they are of none.
[[nodiscard]] std::optional<int> protocol_in(std::uint64_t spoken);

// What a connection is for.
enum class Purpose : std::uint32_t {
  meeting,  // with rank 0, where ranks meet
  peer      // between ranks that have met
};

struct Hello {
  std::uint64_t spoken = spoken_in(protocol);
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
  std::int32_t to = 0;     // the rank that is called
  std::int32_t lane = 0;   // which of its connections with this rank it is
  std::uint32_t port = 0;  // where the caller listens
  Purpose purpose = Purpose::meeting;
  std::uint32_t has_secret = 0;
  std::uint32_t unused = 0;
  Digest nonce = {};
  Digest job = {};
};

struct Challenge {
  std::uint64_t spoken = spoken_in(protocol);
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
  std::uint32_t has_secret = 0;
  std::uint32_t unused = 0;
  Digest nonce = {};
  Digest job = {};
  Digest proof = {};  // of Hello and of what stands before
};

// What an acceptor says to who has proved to know the job's key.
enum class Outcome : std::uint32_t {
  welcome,
  other_ranks,  // it counts another number of ranks
  other_job,    // the acceptor's description of its job follows
  came_twice,   // there is such a rank already
  not_yet       // it is too early: call again
};

struct Answer {
  Outcome outcome = Outcome::welcome;
  std::uint32_t text_bytes = 0;
};

// A description of more bytes than this is not sent.
inline constexpr std::size_t longest_description = std::size_t{1} << 21;

// This process as a rank of a job.
struct Member {
  int rank = 0;
  int ranks = 1;
  bool has_secret = false;
  Digest job = {};  // of its description
  Digest key = {};  // of meetings
  std::optional<Digest> peer_key = {};

  [[nodiscard]] const Digest* key_of(Purpose purpose) const;
};

// The key of a secret, which may be empty, and that of the ranks whom rank 0 has told `told`.
[[nodiscard]] Digest meeting_key(std::string_view secret);
[[nodiscard]] Digest peer_key(const Digest& meeting_key, const Digest& told);

// Why a handshake did not come to an end.
enum class Fault {
  none,
  foreign,         // it speaks no protocol of Paceline
  impossible,      // no rank says that
  other_protocol,  // of Paceline, but not this one
  no_secret,       // one side has a secret and the other has none
  no_proof,        // its proof is not of this job's key
  refused          // the acceptor has said why
};

// Bytes that are to come and to go, of either side.
class Handshake {
 public:
  // Where the next bytes go; empty while none are awaited. No byte is taken that is not of the
  // handshake.
  [[nodiscard]] std::span<std::byte> room();
  // Returns the bytes that are to be sent next.
  [[nodiscard]] std::span<const std::byte> unsent() const;
  void sent(std::size_t bytes);

  [[nodiscard]] Fault fault() const { return fault_; }
  // The protocol that the other side speaks, once it has said one.
  [[nodiscard]] int spoken_protocol() const { return spoken_protocol_; }

 protected:
  void expect(std::span<std::byte> room);
  // Counts bytes that came. Returns whether the room is full.
  [[nodiscard]] bool fills(std::size_t bytes);
  [[nodiscard]] std::size_t filled() const { return filled_; }
  void say(std::span<const std::byte> bytes);
  // Nothing more is awaited.
  void fail(Fault fault);
  // Looks at the first 8 bytes as soon as they are there. Returns whether they are of this protocol.
  [[nodiscard]] bool knows_protocol(std::uint64_t spoken);

 private:
  std::span<std::byte> room_;
  std::size_t filled_ = 0;
  std::string unsent_;
  std::size_t sent_ = 0;
  Fault fault_ = Fault::none;
  int spoken_protocol_ = 0;
};

// The side that is called. It does not move: the room is in it.
class Acceptor : public Handshake {
 public:
  // The member outlives it.
  Acceptor(const Member& self, const Digest& nonce);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // So many bytes of room() have come.
  void came(std::size_t bytes);
  // Returns what the caller has said of itself, once it has said it all.
  [[nodiscard]] const Hello& caller() const { return hello_; }
  // Whether the caller has given its proof, and waits for an answer.
  [[nodiscard]] bool has_proof() const { return step_ == Step::proved; }
  // Gives it, with a text behind it. Afterwards only unsent() is left to do.
  void answer(Outcome outcome, std::string_view text);
  [[nodiscard]] bool has_answered() const { return step_ == Step::answered; }

 private:
  enum class Step { greeting, proving, proved, answered };
  void take_hello();
  void take_proof();

  const Member& self_;
  Step step_ = Step::greeting;
  Hello hello_ = {};
  Challenge challenge_ = {};
  Digest proof_ = {};
};

// The side that calls. It does not move, either.
class Caller : public Handshake {
 public:
  // The member outlives it. `hello` says whom it calls, by what lane, for what, and where this rank
  // listens; the rest of it is the member's.
  Caller(const Member& self, const Hello& hello, const Digest& nonce);
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  void came(std::size_t bytes);
  [[nodiscard]] bool is_welcome() const { return step_ == Step::welcome; }
  // What the acceptor has said of itself; of use from the fault no_secret on.
  [[nodiscard]] const Challenge& acceptor() const { return challenge_; }
  // Where it has refused.
  [[nodiscard]] Outcome outcome() const { return answer_.outcome; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  enum class Step { greeting, proving, reading, welcome, refused };
  void take_challenge();
  void take_answer();

  const Member& self_;
  Step step_ = Step::greeting;
  Hello hello_ = {};
  Challenge challenge_ = {};
  Answer answer_ = {};
  std::string text_;
};

}  // namespace paceline::runtime::tcp

// Handshakes without sockets: bytes that honest ranks, other jobs and strangers say.
#include "runtime/transport/tcp_handshake.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/transport/rendezvous_secret.h"
#include "tests/support/error_of.h"

namespace paceline::runtime::tcp {
namespace {

constexpr std::string_view secret = "a secret that has bytes enough";

Member member(int rank, int ranks, std::string_view key = secret, std::string_view job = "job") {
  return {.rank = rank,
          .ranks = ranks,
          .has_secret = !key.empty(),
          .job = digest_of(job),
          .key = meeting_key(key)};
}

Member with_peers(Member self, std::string_view told = "told") {
  self.peer_key = peer_key(self.key, digest_of(told));
  return self;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
template <class T>
std::string memory_of(const T& value) {
  return text_of(std::as_bytes(std::span(&value, 1)));
}

// Takes up to this many bytes of what one side wants to say.
std::string taken(Handshake& from, std::size_t most = 1 << 20) {
  const std::string said = text_of(from.unsent().first(std::min(most, from.unsent().size())));
  from.sent(said.size());
  return said;
}

// Gives bytes to a side, as far as it takes any. Returns how many it took.
template <class Side>
std::size_t give(Side& to, std::string_view bytes) {
  std::size_t given = 0;
  while (given < bytes.size() && !to.room().empty()) {
    const std::size_t size = std::min(bytes.size() - given, to.room().size());
    std::memcpy(to.room().data(), bytes.data() + given, size);
    to.came(size);
    given += size;
  }
  return given;
}

// What each side says, until neither says more. `most` bytes travel at a time.
struct Said {
  std::string by_caller;
  std::string by_acceptor;
};
Said converse(Caller& caller, Acceptor& acceptor, Outcome outcome = Outcome::welcome,
              std::string_view text = {}, std::size_t most = 1 << 20) {
  Said said;
  for (bool has_moved = true; has_moved;) {
    const std::string from_caller = taken(caller, most);
    give(acceptor, from_caller);
    if (acceptor.has_proof()) acceptor.answer(outcome, text);
    const std::string from_acceptor = taken(acceptor, most);
    give(caller, from_acceptor);
    said.by_caller += from_caller;
    said.by_acceptor += from_acceptor;
    has_moved = !from_caller.empty() || !from_acceptor.empty();
  }
  return said;
}

// The bytes of an honest handshake of ranks 1 and 0.
Said honest() {
  const Member a = member(0, 3);
  const Member b = member(1, 3);
  Acceptor acceptor(a, random_digest());
  Caller caller(b, {.to = 0}, random_digest());
  const Said said = converse(caller, acceptor);
  EXPECT_TRUE(caller.is_welcome());
  return said;
}

RC_GTEST_PROP(TcpHandshake, RanksOfOneJobKnowEachOther, ()) {
  const int ranks = *rc::gen::inRange(2, 1024);
  const int to = *rc::gen::inRange(0, ranks);
  const int from = *rc::gen::suchThat(rc::gen::inRange(0, ranks), [&](int r) { return r != to; });
  const bool has_secret = *rc::gen::arbitrary<bool>();
  const bool are_peers = *rc::gen::arbitrary<bool>();
  const std::string_view key = has_secret ? secret : "";
  const Member a = with_peers(member(to, ranks, key));
  const Member b = with_peers(member(from, ranks, key));
  Acceptor acceptor(a, random_digest());
  const Hello said{.to = to,
                   .lane = *rc::gen::inRange(0, 100),
                   .port = *rc::gen::inRange(0U, 65536U),
                   .purpose = are_peers ? Purpose::peer : Purpose::meeting};
  Caller caller(b, said, random_digest());
  converse(caller, acceptor, Outcome::welcome, {}, *rc::gen::inRange<std::size_t>(1, 200));
  RC_ASSERT(caller.is_welcome());
  RC_ASSERT(acceptor.has_answered());
  RC_ASSERT(acceptor.caller().rank == from);
  RC_ASSERT(acceptor.caller().lane == said.lane);
  RC_ASSERT(acceptor.caller().port == said.port);
}

RC_GTEST_PROP(TcpHandshake, BytesOfStrangersProveNothing, ()) {
  const Member a = with_peers(member(0, 3));
  const Said recorded = honest();
  std::string said = *rc::gen::arbitrary<std::string>();
  // Some begin as a rank does: with its protocol, its whole greeting, or part of that.
  const std::size_t kept = *rc::gen::element<std::size_t>(0, 8, 24, 100, 104, 120);
  said = recorded.by_caller.substr(0, kept) + said;
  if (*rc::gen::arbitrary<bool>()) said.resize(200, '\x5a');
  Acceptor acceptor(a, random_digest());
  give(acceptor, said);
  RC_ASSERT(!acceptor.has_proof());
  RC_ASSERT(!acceptor.has_answered());

  const Member b = member(1, 3);
  Caller caller(b, {.to = 0}, random_digest());
  give(caller, recorded.by_acceptor.substr(0, kept) + said);
  RC_ASSERT(!caller.is_welcome());
}

RC_GTEST_PROP(TcpHandshake, OneWrongBitIsRefused, ()) {
  const Member a = member(0, 3);
  const Member b = member(1, 3);
  Acceptor acceptor(a, random_digest());
  Caller caller(b, {.to = 0, .port = 29500}, random_digest());
  const auto flipped = [](std::string bytes, std::size_t bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    return bytes;
  };
  const auto bit_of = [](std::size_t bytes) {
    return *rc::gen::inRange<std::size_t>(0, 8 * bytes);
  };
  const int wrong = *rc::gen::inRange(0, 4);  // which of the four messages
  std::string hello = taken(caller);
  if (wrong == 0) hello = flipped(hello, bit_of(hello.size()));
  give(acceptor, hello);
  std::string challenge = taken(acceptor);
  if (wrong == 1) challenge = flipped(challenge, bit_of(challenge.size()));
  give(caller, challenge);
  std::string proof = taken(caller);
  if (wrong < 2) RC_ASSERT(proof.empty());
  if (wrong == 2) proof = flipped(proof, bit_of(proof.size()));
  give(acceptor, proof);
  RC_ASSERT(acceptor.has_proof() == (wrong == 3));
  if (wrong < 3) return;
  acceptor.answer(Outcome::welcome, {});
  std::string answer = taken(acceptor);
  give(caller, flipped(answer, bit_of(answer.size())));
  RC_ASSERT(!caller.is_welcome());
}

TEST(TcpHandshake, WhatWasRecordedIsNoProofAgain) {
  const Said recorded = honest();
  const Member a = member(0, 3);
  Acceptor acceptor(a, random_digest());
  EXPECT_EQ(give(acceptor, recorded.by_caller), recorded.by_caller.size());
  EXPECT_EQ(acceptor.fault(), Fault::no_proof);

  const Member b = member(1, 3);
  Caller caller(b, {.to = 0}, random_digest());
  give(caller, recorded.by_acceptor);
  EXPECT_EQ(caller.fault(), Fault::no_proof);
}

TEST(TcpHandshake, WhatIsSentBackIsNoProof) {
  const Member a = member(0, 3);
  const Member b = member(1, 3);
  // The acceptor's own proof.
  Acceptor acceptor(a, random_digest());
  Caller caller(b, {.to = 0}, random_digest());
  give(acceptor, taken(caller));
  const std::string challenge = taken(acceptor);
  give(acceptor, challenge.substr(challenge.size() - sizeof(Digest)));
  EXPECT_EQ(acceptor.fault(), Fault::no_proof);
  // The caller's own greeting, and its own proof.
  Caller echoed(b, {.to = 0}, random_digest());
  const std::string hello = taken(echoed);
  give(echoed, hello + hello);
  EXPECT_FALSE(echoed.is_welcome());
  EXPECT_NE(echoed.fault(), Fault::none);
}

// A stranger between them passes on what an honest rank says to another rank than it called.
TEST(TcpHandshake, AProofForOneRankIsNoneForAnother) {
  const Member two = with_peers(member(2, 4));
  const Member three = with_peers(member(3, 4));
  Caller caller(three, {.to = 1, .purpose = Purpose::peer}, random_digest());
  std::string hello = taken(caller);
  Acceptor acceptor(two, random_digest());
  give(acceptor, hello);
  EXPECT_EQ(acceptor.fault(), Fault::impossible);
  // It changes whom the greeting is for.
  Hello changed;
  std::memcpy(&changed, hello.data(), sizeof changed);
  changed.to = 2;
  Acceptor deceived(two, random_digest());
  give(deceived, memory_of(changed));
  std::string challenge = taken(deceived);
  Challenge said;
  std::memcpy(&said, challenge.data(), sizeof said);
  said.rank = 1;
  give(caller, memory_of(said));
  EXPECT_EQ(caller.fault(), Fault::no_proof);
}

TEST(TcpHandshake, PeersKnowEachOtherByWhatRank0HasToldThem) {
  const Member a = with_peers(member(0, 3));
  const Member of_other_meeting = with_peers(member(1, 3), "told to others");
  Acceptor acceptor(a, random_digest());
  Caller caller(of_other_meeting, {.to = 0, .purpose = Purpose::peer}, random_digest());
  converse(caller, acceptor);
  EXPECT_EQ(caller.fault(), Fault::no_proof);
  EXPECT_FALSE(acceptor.has_proof());
}

TEST(TcpHandshake, TellsSecretsApart) {
  struct Case {
    std::string_view of_acceptor, of_caller;
    Fault fault;
  };
  for (const Case& c : {Case{secret, "another secret of some length", Fault::no_proof},
                        Case{secret, "", Fault::no_secret}, Case{"", secret, Fault::no_secret}}) {
    const Member a = member(0, 2, c.of_acceptor);
    const Member b = member(1, 2, c.of_caller);
    Acceptor acceptor(a, random_digest());
    Caller caller(b, {.to = 0}, random_digest());
    const Said said = converse(caller, acceptor);
    EXPECT_EQ(caller.fault(), c.fault);
    EXPECT_FALSE(acceptor.has_proof());
    EXPECT_EQ((said.by_caller + said.by_acceptor).find(secret), std::string::npos);
    // One that goes on nonetheless.
    give(acceptor, std::string(sizeof(Digest), 'x'));
    EXPECT_EQ(acceptor.fault(), c.fault);
  }
}

TEST(TcpHandshake, TellsRefusedRanksWhy) {
  const Member a = member(0, 3);
  const std::string description = "model: resnet50\nwire: fp16\n";
  for (const Outcome outcome :
       {Outcome::other_ranks, Outcome::other_job, Outcome::came_twice, Outcome::not_yet}) {
    const Member b = member(1, 3, secret, "job of another model");
    Acceptor acceptor(a, random_digest());
    Caller caller(b, {.to = 0}, random_digest());
    converse(caller, acceptor, outcome, outcome == Outcome::other_job ? description : "", 7);
    EXPECT_FALSE(caller.is_welcome());
    EXPECT_EQ(caller.fault(), Fault::refused);
    EXPECT_EQ(caller.outcome(), outcome);
    EXPECT_EQ(caller.text(), outcome == Outcome::other_job ? description : "");
    EXPECT_EQ(caller.acceptor().ranks, 3);
    EXPECT_NE(acceptor.caller().job, a.job);
  }
}

TEST(TcpHandshake, AnAnswerWithALengthBeyondReasonIsNone) {
  for (const Answer& said : {Answer{Outcome::other_job, longest_description + 1},
                             Answer{Outcome::other_job, 0xffffffff}, Answer{Outcome::welcome, 1},
                             Answer{Outcome::came_twice, 1}, Answer{static_cast<Outcome>(9), 0}}) {
    const Member a = member(0, 3);
    const Member b = member(1, 3);
    Acceptor acceptor(a, random_digest());
    Caller caller(b, {.to = 0}, random_digest());
    give(acceptor, taken(caller));
    give(caller, taken(acceptor));
    give(caller, memory_of(said));
    EXPECT_EQ(caller.fault(), Fault::impossible);
  }
}

TEST(TcpHandshake, GreetingsThatNoRankSaysAreRefused) {
  const Member a = member(0, 3);
  const auto fault_of = [&](Hello hello) {
    Acceptor acceptor(a, random_digest());
    give(acceptor, memory_of(hello));
    EXPECT_TRUE(taken(acceptor).empty());
    return acceptor.fault();
  };
  const Hello right{.rank = 1, .ranks = 3, .has_secret = 1};
  {
    Acceptor acceptor(a, random_digest());
    give(acceptor, memory_of(right));
    EXPECT_EQ(acceptor.fault(), Fault::none);
  }
  const auto changed = [&](auto change) {
    Hello hello = right;
    change(hello);
    return fault_of(hello);
  };
  EXPECT_EQ(changed([](Hello& h) { h.rank = -1; }), Fault::impossible);
  EXPECT_EQ(changed([](Hello& h) { h.rank = 0; }), Fault::impossible);
  EXPECT_EQ(changed([](Hello& h) { h.rank = 3; }), Fault::impossible);
  EXPECT_EQ(changed([](Hello& h) { h.ranks = 0; }), Fault::impossible);
  EXPECT_EQ(changed([](Hello& h) { h.ranks = -7; }), Fault::impossible);
  EXPECT_EQ(changed([](Hello& h) { h.to = 1; }), Fault::impossible);
  EXPECT_EQ(changed([](Hello& h) { h.lane = -1; }), Fault::impossible);
  EXPECT_EQ(changed([](Hello& h) { h.port = 65536; }), Fault::impossible);
  EXPECT_EQ(changed([](Hello& h) { h.unused = 1; }), Fault::impossible);
  EXPECT_EQ(changed([](Hello& h) { h.has_secret = 2; }), Fault::impossible);
  EXPECT_EQ(changed([](Hello& h) { h.purpose = static_cast<Purpose>(2); }), Fault::impossible);
  // Nobody has met yet.
  EXPECT_EQ(changed([](Hello& h) { h.purpose = Purpose::peer; }), Fault::impossible);
}

TEST(TcpHandshake, OtherProtocolsAreForeign) {
  const Member a = member(0, 3);
  for (const std::string& said :
       {std::string("GET / HTTP/1.1\r\nHost: somebody\r\n\r\n"),
        std::string("SSH-2.0-OpenSSH_9\r\n"),
        std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), std::string(8, '\0'),
        memory_of(spoken_in(0)), memory_of(~std::uint64_t{0})}) {
    Acceptor acceptor(a, random_digest());
    give(acceptor, said);
    EXPECT_EQ(acceptor.fault(), Fault::foreign) << said;
    EXPECT_TRUE(acceptor.unsent().empty());
  }
}

TEST(TcpHandshake, NamesOtherProtocolsOfPaceline) {
  EXPECT_EQ(protocol_in(spoken_in(protocol)), protocol);
  EXPECT_EQ(protocol_in(0x50434c4e54435032), 2);  // "PCLNTCP2"
  EXPECT_EQ(protocol_in(0), std::nullopt);
  const Member a = member(0, 3);
  Acceptor of_newer(a, random_digest());
  give(of_newer, memory_of(spoken_in(4)));
  EXPECT_EQ(of_newer.fault(), Fault::other_protocol);
  EXPECT_EQ(of_newer.spoken_protocol(), 4);
  EXPECT_EQ(taken(of_newer), memory_of(spoken_in(protocol)));

  const Member b = member(1, 3);
  Caller caller(b, {.to = 0}, random_digest());
  give(caller, memory_of(spoken_in(4)));
  EXPECT_EQ(caller.fault(), Fault::other_protocol);
  EXPECT_EQ(caller.spoken_protocol(), 4);

  // What a rank of protocol 2 greets with, and what it reads then: an outcome, two lengths, two texts.
  const std::array<std::uint32_t, 6> older = {0x54435032, 0x50434c4e, 1, 3, 40000, 0};
  Acceptor of_older(a, random_digest());
  give(of_older, memory_of(older));
  EXPECT_EQ(of_older.spoken_protocol(), 2);
  const std::string told = taken(of_older);
  std::array<std::uint32_t, 3> verdict{};
  ASSERT_GT(told.size(), sizeof verdict);
  std::memcpy(&verdict, told.data(), sizeof verdict);
  EXPECT_EQ(verdict[0], 1U);
  EXPECT_EQ(told.substr(sizeof verdict, verdict[1]),
            "this rank speaks protocol 2, and rank 0 protocol 3");
  EXPECT_EQ(told.substr(sizeof verdict + verdict[1]),
            "start all ranks with the same version of Paceline");
}

TEST(RendezvousSecret, HasBytesEnough) {
  EXPECT_FALSE(RendezvousSecret().is_set());
  EXPECT_TRUE(RendezvousSecret("0123456789abcdef").is_set());
  EXPECT_EQ(test::error_of([] { return RendezvousSecret("0123456789abcde"); }),
            "PACELINE_RENDEZVOUS_SECRET: a secret of 15 bytes; give at least 16, such as those of "
            "openssl rand -hex 32");
  EXPECT_EQ(test::error_of([] { return RendezvousSecret(""); }),
            "PACELINE_RENDEZVOUS_SECRET: a secret of 0 bytes; give at least 16, such as those of "
            "openssl rand -hex 32");
}

}  // namespace
}  // namespace paceline::runtime::tcp

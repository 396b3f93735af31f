// A job's ports under strangers: connections that say nothing, too little, too slowly, the wrong thing or
// what was once right, many at once, and processes that listen in a rank's place.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/channel/messages.h"
#include "runtime/channel/tcp_job.h"
#include "runtime/transport/tcp_introductions.h"
#include "tests/support/error_of.h"
#include "tests/support/free_port.h"

namespace paceline::runtime {
namespace {

using tcp::Address;
using tcp::Hello;
using tcp::Introductions;
using tcp::Member;
using tcp::Outcome;
using tcp::Purpose;
using tcp::Socket;

const JobIdentity with_secret{"model: of the test\n",
                              RendezvousSecret("a secret of this very test")};
const JobIdentity without_secret{"model: of the test\n"};

Address address_of(std::uint16_t port) {
  return tcp::resolve("127.0.0.1", port).front();
}

// Who calls without being of the job. Waits until somebody listens.
class Stranger {
 public:
  explicit Stranger(std::uint16_t port) {
    const Address address = address_of(port);
    for (;;) {
      socket_ = tcp::begin_connection(address);
      pollfd waited{socket_.get(), POLLOUT, 0};
      // A try while nobody listens may be connected to itself.
      if (socket_.is_open() && ::poll(&waited, 1, -1) == 1 && tcp::connection_error(socket_) == 0 &&
          tcp::own_address(socket_).port() != port)
        return;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  bool say(const std::string& bytes) {
    return tcp::write_all(socket_, std::as_bytes(std::span(bytes)), Seconds{60}) == tcp::End::done;
  }
  // All that it is told until the connection is closed.
  [[nodiscard]] std::string hear() const {
    std::string heard;
    for (std::array<std::byte, 256> room{};;) {
      const int got = tcp::read_some(socket_, room);
      if (got < 0) return heard;
      if (got == 0) {
        pollfd waited{socket_.get(), POLLIN, 0};
        ::poll(&waited, 1, -1);
      }
      heard.append(reinterpret_cast<const char*>(room.data()), static_cast<std::size_t>(got));
    }
  }

 private:
  Socket socket_;
};

std::string greeting(const Hello& hello) {
  return {reinterpret_cast<const char*>(&hello), sizeof hello};
}

// A job of three ranks, of which two come when the strangers have done what they do.
void expect_job_to_run(const JobIdentity& job,
                       const std::function<void(std::uint16_t port)>& strangers) {
  const Rendezvous place{"127.0.0.1", test::free_port()};
  std::vector<std::string> errors(3);
  const auto rank = [&](int r) {
    try {
      TcpJob met(place, job, r, 3, Seconds{300});
      EXPECT_EQ(met.place_on_node().ranks, 3);
      met.open_streams(2);
      double sum = 1;
      sum_over_ranks(met.channel(), {&sum, 1});
      EXPECT_EQ(sum, 3);
    } catch (const std::exception& error) {
      errors[static_cast<std::size_t>(r)] = error.what();
    }
  };
  std::jthread first([&] { rank(0); });
  strangers(place.port);
  std::vector<std::jthread> others;
  for (const int r : {1, 2}) others.emplace_back([&, r] { rank(r); });
  others.clear();
  first.join();
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

void expect_jobs_to_run(const std::function<void(std::uint16_t port)>& strangers) {
  expect_job_to_run(with_secret, strangers);
  expect_job_to_run(without_secret, strangers);
}

TEST(TcpStrangers, WhoSayNothingHoldUpNobody) {
  std::vector<Stranger> strangers;
  expect_jobs_to_run([&](std::uint16_t port) {
    for (int i = 0; i < 20; ++i) strangers.emplace_back(port);
  });
}

TEST(TcpStrangers, WhoSayTooLittleHoldUpNobody) {
  std::vector<Stranger> strangers;
  expect_jobs_to_run([&](std::uint16_t port) {
    for (const std::size_t size : {1U, 7U, 8U, 24U, 103U})
      EXPECT_TRUE(
          strangers.emplace_back(port).say(greeting({.rank = 1, .ranks = 3}).substr(0, size)));
  });
}

// They are connected before the ranks come, and their last byte never comes: whoever says all of a
// greeting is a rank of a job without a secret.
TEST(TcpStrangers, WhoDripHoldUpNobody) {
  std::atomic<bool> done = false;
  std::vector<std::jthread> drips;
  expect_jobs_to_run([&](std::uint16_t port) {
    for (int i = 0; i < 3; ++i)
      drips.emplace_back([&done, stranger = Stranger(port)]() mutable {
        const std::string said = greeting({.rank = 1, .ranks = 3});
        for (std::size_t at = 0; !done; ++at) {
          if (at + 1 < said.size() && !stranger.say(said.substr(at, 1))) return;
          std::this_thread::sleep_for(std::chrono::milliseconds(30));
        }
      });
  });
  done = true;
}

TEST(TcpStrangers, WhoSpeakSomethingElseAreClosed) {
  expect_jobs_to_run([](std::uint16_t port) {
    for (const std::string& said : {std::string("GET / HTTP/1.1\r\nHost: somebody\r\n\r\n"),
                                    std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),
                                    std::string(100'000, '\xff')}) {
      Stranger stranger(port);
      stranger.say(said);
      EXPECT_EQ(stranger.hear(), "");
    }
  });
}

TEST(TcpStrangers, GreetingsThatNoRankSaysEndTheirConnectionOnly) {
  expect_jobs_to_run([](std::uint16_t port) {
    for (const Hello& said :
         {Hello{.rank = -1, .ranks = 3}, Hello{.rank = 0, .ranks = 3}, Hello{.rank = 3, .ranks = 3},
          Hello{.rank = 1, .ranks = -3}, Hello{.rank = 1, .ranks = 3, .to = 2},
          Hello{.rank = 1, .ranks = 3, .lane = 1, .purpose = Purpose::peer}}) {
      Stranger stranger(port);
      EXPECT_TRUE(stranger.say(greeting(said)));
      EXPECT_EQ(stranger.hear(), "");
    }
  });
}

TEST(TcpStrangers, WhoProveNothingAreNoRank) {
  expect_jobs_to_run([](std::uint16_t port) {
    Stranger stranger(port);
    EXPECT_TRUE(stranger.say(greeting({.rank = 1, .ranks = 3}) + std::string(32, 'p') +
                             std::string(1000, 'm')));
    // The challenge, and nothing more. The connection may be reset with what it did not read.
    const std::string heard = stranger.hear();
    EXPECT_TRUE(heard.empty() || heard.size() == sizeof(tcp::Challenge)) << heard.size();
  });
}

TEST(TcpStrangers, ManyAtOnceLockNobodyOut) {
  static_assert(tcp::most_unfinished < 500);
  std::vector<Stranger> strangers;
  expect_job_to_run(with_secret, [&](std::uint16_t port) {
    for (int i = 0; i < 500; ++i) strangers.emplace_back(port);
  });
}

TEST(TcpStrangers, OneWhoCallsAgainAndAgainLocksNobodyOut) {
  std::atomic<bool> done = false;
  std::vector<std::jthread> callers;
  expect_job_to_run(with_secret, [&](std::uint16_t port) {
    callers.emplace_back([&, address = address_of(port)] {
      std::vector<Socket> held(300);
      for (std::size_t i = 0; !done; ++i) {
        held[i % held.size()] = tcp::begin_connection(address);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    });
  });
  done = true;
}

// Listens where ranks meet, and does something to each who comes.
class Squatter {
 public:
  explicit Squatter(std::function<void(const Socket&)> does)
      : listener_(tcp::listen_at(address_of(0))), thread_([this, does](const std::stop_token& end) {
          std::vector<Socket> came;
          while (!end.stop_requested()) {
            pollfd waited{listener_.get(), POLLIN, 0};
            if (::poll(&waited, 1, 10) < 1) continue;
            came.push_back(tcp::accept_from(listener_));
            does(came.back());
          }
        }) {}
  ~Squatter() {
    thread_.request_stop();
    thread_.join();
  }
  [[nodiscard]] std::uint16_t port() const { return tcp::own_address(listener_).port(); }

 private:
  Socket listener_;
  std::jthread thread_;
};

std::string error_at(const Squatter& squatter, const JobIdentity& job) {
  const auto meet = [&] {
    return TcpJob({"127.0.0.1", squatter.port()}, job, 1, 2, Seconds{0.5}).place_on_node();
  };
  std::string error = test::run_error_of(meet);
  const std::string place =
      "cannot connect to rank 0 at 127.0.0.1 port " + std::to_string(squatter.port()) + ": ";
  EXPECT_EQ(error.substr(0, place.size()), place);
  return error.substr(place.size());
}

TEST(TcpStrangers, OneWhoListensInThePlaceOfRank0IsTold) {
  const auto says = [](const std::string& bytes) {
    return [bytes](const Socket& socket) {
      EXPECT_EQ(tcp::write_all(socket, std::as_bytes(std::span(bytes)), Seconds{60}),
                tcp::End::done);
    };
  };
  for (const JobIdentity& job : {with_secret, without_secret}) {
    EXPECT_EQ(error_at(Squatter([](const Socket&) {}), job),
              "what listens there does not answer as a rank does within 0.5 s");
    EXPECT_EQ(error_at(Squatter([](const Socket& socket) { socket.shut_down(); }), job),
              "what listens there has closed the connection");
    EXPECT_EQ(error_at(Squatter(says("HTTP/1.1 400 Bad Request\r\n\r\n")), job),
              "what listens there is no rank 0 of this job: it does not answer as one does");
    EXPECT_EQ(
        error_at(Squatter(says(greeting({.rank = 1, .ranks = 2}) + std::string(16, 'x'))), job),
        "what listens there is no rank 0 of this job: it does not answer as one does");
  }
}

// It speaks the protocol, and does not know the secret.
TEST(TcpStrangers, OneWhoPretendsToBeRank0DoesNotGetTheRanks) {
  tcp::Challenge pretended{.rank = 0, .ranks = 2, .has_secret = 1};
  const std::string bytes(reinterpret_cast<const char*>(&pretended), sizeof pretended);
  std::atomic<std::size_t> most_heard = 0;
  const Squatter squatter([&](const Socket& socket) {
    EXPECT_EQ(tcp::write_all(socket, std::as_bytes(std::span(bytes)), Seconds{60}), tcp::End::done);
    std::array<std::byte, 4096> room{};
    std::size_t heard = 0;
    for (int got = 0; got >= 0 && heard < room.size();) {
      got = tcp::read_some(socket, std::span(room).subspan(heard));
      if (got > 0) heard += static_cast<std::size_t>(got);
    }
    most_heard = std::max(most_heard.load(), heard);
  });
  EXPECT_EQ(test::error_of([&] {
              return TcpJob({"127.0.0.1", squatter.port()}, with_secret, 1, 2, Seconds{60})
                  .place_on_node();
            }),
            "rank 0 has another secret than this rank; give all ranks the same "
            "PACELINE_RENDEZVOUS_SECRET");
  EXPECT_LE(most_heard, sizeof(Hello));  // no proof was given away
}

TEST(TcpStrangers, OneWhoListensInThePlaceOfRank0AndGoesDoesNoHarm) {
  std::atomic<int> calls = 0;
  auto squatter = std::make_unique<Squatter>([&](const Socket& socket) {
    socket.shut_down();
    ++calls;
  });
  const Rendezvous place{"127.0.0.1", squatter->port()};
  std::string error;
  std::jthread other([&] {
    try {
      TcpJob(place, with_secret, 1, 2, Seconds{300}).open_streams(1);
    } catch (const std::exception& thrown) {
      error = thrown.what();
    }
  });
  while (calls < 3) std::this_thread::yield();
  squatter.reset();
  TcpJob(place, with_secret, 0, 2, Seconds{300}).open_streams(1);
  other.join();
  EXPECT_EQ(error, "");
}

// Connections between ranks that have met: two ranks, whose loops one thread runs in turn.
class Peers : public testing::Test {
 protected:
  Peers() {
    for (Member* member : {&one_, &two_}) {
      member->ranks = 3;
      member->job = tcp::digest_of("job");
      member->key = tcp::meeting_key("");
      member->peer_key = tcp::peer_key(member->key, told_);
    }
    listeners_.push_back(tcp::listen_at(address_of(0)));
  }
  [[nodiscard]] std::uint16_t port() const { return tcp::own_address(listeners_.front()).port(); }
  void step(Introductions& introductions) { introductions.step(tcp::after(Seconds{0.01})); }

  tcp::Digest told_ = tcp::random_digest();
  Member one_{.rank = 1};
  Member two_{.rank = 2};
  std::vector<Socket> listeners_;
  std::vector<Socket> nobody_;
  std::vector<Hello> came_;
  tcp::Reception reception_{
      .admit = [](const Hello&) { return Outcome::welcome; },
      .take = [this](const Hello& caller, Socket) { came_.push_back(caller); }};
  Introductions called_{one_, listeners_, "job", reception_, Seconds{60}};
};

TEST_F(Peers, FindEachOtherAmongStrangers) {
  std::vector<Stranger> strangers;
  for (std::size_t i = 0; i < tcp::most_unfinished + 40; ++i) strangers.emplace_back(port());
  strangers.emplace_back(port()).say("GET / HTTP/1.1\r\n\r\n");
  strangers.emplace_back(port()).say(
      greeting({.rank = 2, .ranks = 3, .to = 1, .purpose = Purpose::peer}) + std::string(500, 'm'));
  Introductions calling(two_, nobody_, "job", {}, Seconds{60});
  bool is_made = false;
  calling.call({.to = 1, .lane = 4, .purpose = Purpose::peer, .places = {address_of(port())}},
               [&](Socket) { is_made = true; });
  while (!is_made || came_.empty()) {
    step(called_);
    if (!is_made) step(calling);
  }
  ASSERT_EQ(came_.size(), 1U);
  EXPECT_EQ(came_[0].rank, 2);
  EXPECT_EQ(came_[0].lane, 4);
}

TEST_F(Peers, AreNotThoseOfAnotherMeeting) {
  Member other = two_;
  other.peer_key = tcp::peer_key(other.key, tcp::random_digest());
  Introductions calling(other, nobody_, "job", {}, Seconds{60});
  calling.call({.to = 1,
                .purpose = Purpose::peer,
                .places = {address_of(port())},
                .what = "connect to rank 1"},
               [](Socket) { FAIL() << "it is of another meeting"; });
  const auto why = [&] {
    return test::run_error_of([&] {
      calling.expect_calls_made();
      return 0;
    });
  };
  while (why() == "cannot connect to rank 1: it did not answer") {
    step(called_);
    step(calling);
  }
  EXPECT_EQ(why(),
            "cannot connect to rank 1: what listens there is no rank 1 of this job: it does not "
            "answer as one does");
  EXPECT_TRUE(came_.empty());
}

TEST_F(Peers, WhoAreGoneAreLostAtOnce) {
  const std::uint16_t free = test::free_port();
  Introductions calling(two_, nobody_, "job", {}, Seconds{60});
  EXPECT_EQ(test::run_error_of([&] {
              calling.call({.to = 1,
                            .purpose = Purpose::peer,
                            .places = {address_of(free)},
                            .what = "connect to rank 1"},
                           [](Socket) {});
              for (;;) step(calling);
              return 0;
            }),
            "cannot connect to rank 1: Connection refused");
}

TEST_F(Peers, SayWhomTheyRefused) {
  const auto text_after = [&](const std::function<void()>& call) {
    const std::string before = called_.refused_text();
    call();
    while (called_.refused_text() == before) step(called_);
    return called_.refused_text();
  };
  EXPECT_EQ(called_.refused_text(), "");
  EXPECT_EQ(text_after([&] { Stranger(port()).say("GET / HTTP/1.1\r\n\r\n"); }),
            "; 1 connection was refused, because it speaks no protocol of Paceline");
  EXPECT_EQ(text_after([&] { Stranger(port()).say(greeting({.rank = -1, .ranks = 3, .to = 1})); }),
            "; 2 connections were refused, one of them because it says that it is rank -1 of 3");
  EXPECT_EQ(text_after([&] { Stranger stranger(port()); }),
            "; 3 connections were refused, one of them because it has left");
  // What a rank was refused for goes before what strangers were.
  const std::uint64_t older = tcp::spoken_in(2);
  Stranger of_older(port());
  EXPECT_EQ(text_after([&] {
              of_older.say({reinterpret_cast<const char*>(&older), sizeof older});
            }),
            "; 4 connections were refused, one of them because it speaks protocol 2, and this rank "
            "protocol 3");
  EXPECT_EQ(text_after([&] { Stranger stranger(port()); }),
            "; 5 connections were refused, one of them because it speaks protocol 2, and this rank "
            "protocol 3");
}

}  // namespace
}  // namespace paceline::runtime

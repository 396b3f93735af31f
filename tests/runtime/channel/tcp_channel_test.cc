#include "runtime/channel/tcp_channel.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <latch>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "models/base/error.h"
#include "runtime/channel/messages.h"
#include "tests/support/error_of.h"
#include "tests/support/free_port.h"

namespace paceline::runtime {
namespace {

const JobIdentity job{.description = "model: of the test\n"};

Rendezvous here() {
  return {"127.0.0.1", test::free_port()};
}

// Runs each in a thread, in the reverse order of ranks. Returns their errors.
std::vector<std::string> errors_of(int ranks, const std::function<void(int)>& work) {
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  std::vector<std::jthread> threads;
  for (int rank = ranks; rank-- > 0;) {
    threads.emplace_back([&, rank] {
      try {
        work(rank);
      } catch (const std::runtime_error& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  threads.clear();
  return errors;
}

class TcpChannelOf : public testing::TestWithParam<int> {};

TEST_P(TcpChannelOf, MovesMessagesBetweenAllRanks) {
  const int ranks = GetParam();
  const Rendezvous place = here();
  const auto errors = errors_of(ranks, [&](int rank) {
    TcpChannel channel(place, job, rank, ranks, Seconds{10});
    EXPECT_EQ(channel.rank(), rank);
    EXPECT_EQ(channel.ranks(), ranks);
    std::vector<double> sums = {1.0, static_cast<double>(rank)};
    sum_over_ranks(channel, sums);
    EXPECT_EQ(sums, (std::vector<double>{1.0 * ranks, ranks * (ranks - 1) / 2.0}));
    // Each two ranks: the lower one sends first. The second message is larger than any buffer.
    for (int a = 0; a < ranks; ++a) {
      for (int b = a + 1; b < ranks; ++b) {
        if (rank != a && rank != b) continue;
        for (const std::size_t size : {std::size_t{3}, std::size_t{3} << 20, std::size_t{0}}) {
          std::vector<int> sent(size), received(size, -1);
          std::iota(sent.begin(), sent.end(), a * 10 + b);
          const auto bytes = std::as_writable_bytes(std::span(received));
          if (rank == a) {
            channel.send(b, std::as_bytes(std::span(sent)));
            channel.receive(b, bytes);
          } else {
            channel.receive(a, bytes);
            channel.send(a, std::as_bytes(std::span(sent)));
          }
          EXPECT_EQ(received, sent) << a << " and " << b;
        }
      }
    }
    barrier(channel);
  });
  EXPECT_EQ(errors, std::vector<std::string>(static_cast<std::size_t>(ranks)));
}

INSTANTIATE_TEST_SUITE_P(Ranks, TcpChannelOf, testing::Values(1, 2, 3, 5));

TEST(TcpChannel, NamesAPeerThatIsGoneOrSilent) {
  const Rendezvous place = here();
  std::mutex silent;
  silent.lock();
  const auto errors = errors_of(3, [&](int rank) {
    TcpChannel channel(place, job, rank, 3, Seconds{rank == 0 ? 0.3 : 10.0});
    std::array<std::byte, 4> room{};
    if (rank == 1) channel.abort();
    if (rank == 2) {
      const std::lock_guard waits(silent);  // until rank 0 has lost its patience
      return;
    }
    if (rank == 0) {
      EXPECT_THROW(channel.receive(1, room), RunError);
      try {
        channel.receive(2, room);
      } catch (...) {
        silent.unlock();
        throw;
      }
    }
  });
  EXPECT_EQ(errors[0], "cannot receive from rank 2: nothing came from it for 0.3 s");
}

// All who have come are told, by rank 0.
TEST(TcpChannel, SaysWhichRanksDidNotCome) {
  const Rendezvous place = here();
  const auto errors = errors_of(3, [&](int rank) {
    TcpChannel(place, job, rank == 2 ? 3 : rank, 5, Seconds{rank == 0 ? 0.3 : 5.0});
  });
  EXPECT_EQ(errors,
            std::vector<std::string>(3, "cannot start the job: ranks 2, 4 did not come in 0.3 s"));
}

TEST(TcpChannel, SaysThatNobodyListens) {
  const Rendezvous place = here();
  const auto errors = errors_of(2, [&](int rank) {
    if (rank == 1) TcpChannel(place, job, rank, 2, Seconds{0.2});
  });
  EXPECT_EQ(errors[1], "cannot connect to rank 0 at 127.0.0.1 port " + std::to_string(place.port) +
                           ": Connection refused");
}

// Who does not fit is refused, and the others go on.
TEST(TcpChannel, RefusesARankThatCountsOthers) {
  const Rendezvous place = here();
  std::latch refused(1);
  const auto errors = errors_of(3, [&](int thread) {
    if (thread == 2) {
      EXPECT_EQ(test::error_of([&] {
                  TcpChannel(place, job, 1, 4, Seconds{60});
                  return 0;
                }),
                "rank 1 was started for 4 ranks, and rank 0 for 2; start all with the same "
                "--ranks");
      refused.count_down();
      return;
    }
    if (thread == 1) refused.wait();
    TcpChannel channel(place, job, thread, 2, Seconds{60});
    barrier(channel);
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

TEST(TcpChannel, RefusesARankThatComesTwice) {
  const Rendezvous place = here();
  std::latch refused(1);
  const auto errors = errors_of(4, [&](int thread) {
    // Threads 1 and 3 are rank 1: one is refused, whichever comes second, and rank 2 comes then.
    if (thread == 2) refused.wait();
    const int rank = thread == 3 ? 1 : thread;
    try {
      TcpChannel channel(place, job, rank, 3, Seconds{60});
      barrier(channel);
    } catch (...) {
      refused.count_down();
      throw;
    }
  });
  const std::string twice =
      "two processes say that they are rank 1; give each one of the ranks 0 to 2";
  EXPECT_EQ(errors[0] + errors[2], "");
  EXPECT_EQ(errors[1] + errors[3], twice);
}

TEST(TcpChannel, RefusesARankOfAnotherJobAndSaysWhatDiffers) {
  const Rendezvous place = here();
  const JobIdentity other{.description = "model: another\n"};
  std::latch refused(1);
  const auto errors = errors_of(3, [&](int thread) {
    if (thread == 2) {
      EXPECT_EQ(test::error_of([&] {
                  TcpChannel(place, other, 1, 2, Seconds{60});
                  return 0;
                }),
                "rank 1 has \"model: another\", and rank 0 \"model: of the test\"; start all ranks "
                "with the same options");
      refused.count_down();
      return;
    }
    if (thread == 1) refused.wait();
    TcpChannel channel(place, job, thread, 2, Seconds{60});
    barrier(channel);
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

TEST(TcpChannel, RefusesARankWithAnotherSecretOrNone) {
  const Rendezvous place = here();
  const JobIdentity secret{job.description, RendezvousSecret("a secret of this very test")};
  const JobIdentity other{job.description, RendezvousSecret("a secret of another test")};
  std::latch refused(1);
  const auto errors = errors_of(3, [&](int thread) {
    if (thread == 2) {
      const std::string same = "; give all ranks the same PACELINE_RENDEZVOUS_SECRET";
      EXPECT_EQ(test::error_of([&] {
                  TcpChannel(place, other, 1, 2, Seconds{60});
                  return 0;
                }),
                "rank 0 has another secret than this rank" + same);
      EXPECT_EQ(test::error_of([&] {
                  TcpChannel(place, job, 1, 2, Seconds{60});
                  return 0;
                }),
                "rank 0 has a secret, and this rank has none" + same);
      refused.count_down();
      return;
    }
    if (thread == 1) refused.wait();
    TcpChannel channel(place, secret, thread, 2, Seconds{60});
    barrier(channel);
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

TEST(TcpChannel, AJobWithoutASecretMeetsOnLoopbackOnly) {
  // 192.0.2.0/24 is for documentation (RFC 5737): nobody is called.
  for (const int rank : {0, 1}) {
    EXPECT_EQ(
        test::error_of([&] {
          TcpChannel({"192.0.2.1", 29500}, job, rank, 2, Seconds{60});
          return 0;
        }),
        "192.0.2.1 is reached beyond this machine, and the job has no secret; make one, and set it "
        "on all ranks: PACELINE_RENDEZVOUS_SECRET=$(openssl rand -hex 32)");
  }
}

TEST(TcpChannel, KnowsAPeerThatHasLeft) {
  const Rendezvous place = here();
  const auto errors = errors_of(3, [&](int rank) {
    TcpChannel channel(place, job, rank, 3, Seconds{10});
    barrier(channel);
    EXPECT_EQ(channel.lost_peer(), -1);
    barrier(channel);
    if (rank == 2) return;
    while (channel.lost_peer() < 0) std::this_thread::yield();
    EXPECT_EQ(channel.lost_peer(), 2);
    double sum = rank;  // the others still reach each other
    if (rank == 0) {
      channel.receive(1, std::as_writable_bytes(std::span(&sum, 1)));
      EXPECT_EQ(sum, 1);
      channel.send(1, std::as_bytes(std::span(&sum, 1)));
    } else {
      channel.send(0, std::as_bytes(std::span(&sum, 1)));
      channel.receive(0, std::as_writable_bytes(std::span(&sum, 1)));
    }
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
}

TEST(TcpChannel, RefusesAMessageOfAnotherSize) {
  const Rendezvous place = here();
  const auto errors = errors_of(2, [&](int rank) {
    TcpChannel channel(place, job, rank, 2, Seconds{5});
    std::array<std::byte, 4> bytes{};
    if (rank == 0) channel.send(1, bytes);
    if (rank == 1) channel.receive(0, std::span(bytes).first(3));
  });
  EXPECT_EQ(errors[1],
            "cannot receive from rank 0: it sent 4 bytes, and 3 were expected: it runs another "
            "program");
}

TEST(Rendezvous, IsAHostAndAPort) {
  EXPECT_EQ(rendezvous_from("node7:29500"), (Rendezvous{"node7", 29500}));
  EXPECT_EQ(rendezvous_from("10.0.0.7:1"), (Rendezvous{"10.0.0.7", 1}));
  EXPECT_EQ(rendezvous_from("[::1]:65535"), (Rendezvous{"::1", 65535}));
  for (const char* text : {"", "node7", "node7:", ":29500", "node7:0", "node7:65536", "node7:x",
                           "node7:29500 ", "::1:29500", "node7:-1"}) {
    EXPECT_EQ(test::error_of([&] { return rendezvous_from(text); }),
              in_quotes(text) +
                  " is no place to meet; give a host and a port, such as node7:29500 or "
                  "[::1]:29500")
        << text;
  }
}

}  // namespace
}  // namespace paceline::runtime

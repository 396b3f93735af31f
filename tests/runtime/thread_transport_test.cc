// The transport between threads: what transport.h promises, and what tests of single calls see.
#include "runtime/transport/thread_transport.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>

#include "runtime/channel/transport_channel.h"
#include "tests/support/transport_contract.h"

namespace paceline::runtime {
namespace {

using test::run_error_of;
using test::TransportContract;
using test::TransportJob;
using test::TransportLossContract;

using Memory = std::vector<std::byte>;

Memory memory_of(int value, std::size_t size) {
  return Memory(size, static_cast<std::byte>(value));
}

// Ranks with a core each, or ranks that share one.
TransportJob job_of(int size, int cores) {
  return {.name = "threads",
          .ranks = size,
          .run = [cores](int ranks, int streams, Seconds patience, const TransportJob::Work& work) {
            auto data = thread_transports(ranks, streams, patience, cores);
            auto control = thread_transports(ranks, 1, patience);
            test::on_ranks(ranks, [&](int rank) {
              const auto own = std::move(data[static_cast<std::size_t>(rank)]);
              const auto other = std::move(control[static_cast<std::size_t>(rank)]);
              TransportChannel channel(*other);
              work({.channel = channel, .transport = *own});
            });
          }};
}

INSTANTIATE_TEST_SUITE_P(OfThreads, TransportContract,
                         testing::Values(job_of(1, 1), job_of(2, 2), job_of(3, 3), job_of(3, 1)));
INSTANTIATE_TEST_SUITE_P(OfThreads, TransportLossContract,
                         testing::Values(job_of(3, 3), job_of(3, 1)));

TEST(ThreadTransport, DeliversInOrderWhicheverEndComesFirst) {
  const auto transports = thread_transports(2);
  Transport& a = *transports[0];
  Transport& b = *transports[1];
  const std::array sent{memory_of(1, 5), memory_of(2, 0), memory_of(3, 7)};
  std::array room{memory_of(0, 5), memory_of(0, 0), memory_of(0, 7)};
  const auto first = a.post_send(0, 1, sent[0]);
  EXPECT_FALSE(a.test(first));
  EXPECT_EQ(b.post_receive(0, 0, room[0]).slot, 0U);  // done at once
  EXPECT_TRUE(a.test(first));
  const auto second = b.post_receive(0, 0, room[1]);
  const auto third = b.post_receive(0, 0, room[2]);
  EXPECT_FALSE(b.test(third));
  EXPECT_TRUE(a.test(a.post_send(0, 1, sent[1])));
  EXPECT_TRUE(b.test(second));
  EXPECT_FALSE(b.test(third));
  EXPECT_TRUE(a.test(a.post_send(0, 1, sent[2])));
  EXPECT_TRUE(b.test(third));
  EXPECT_EQ(room, sent);
}

TEST(ThreadTransport, KeepsStreamsAndDirectionsApart) {
  const auto transports = thread_transports(2, 2);
  const Memory one = memory_of(1, 4);
  const Memory two = memory_of(2, 4);
  Memory room = memory_of(0, 4);
  const auto on_first = transports[0]->post_send(0, 1, one);
  const auto on_second = transports[0]->post_send(1, 1, two);
  const auto back = transports[0]->post_receive(1, 1, room);
  Memory got = memory_of(0, 4);
  EXPECT_TRUE(transports[1]->test(transports[1]->post_receive(1, 0, got)));
  EXPECT_EQ(got, two);
  EXPECT_TRUE(transports[0]->test(on_second));
  EXPECT_FALSE(transports[0]->test(on_first));
  EXPECT_FALSE(transports[0]->test(back));
}

TEST(ThreadTransport, NamesTheRankThatLeft) {
  auto transports = thread_transports(3);
  Memory room = memory_of(0, 4);
  const Memory sent = memory_of(1, 4);
  const auto receive = transports[0]->post_receive(0, 2, room);
  const auto send = transports[1]->post_send(0, 2, sent);
  transports[2].reset();
  EXPECT_EQ(run_error_of([&] { transports[0]->wait(receive); }),
            "cannot receive from rank 2: it is gone");
  EXPECT_EQ(run_error_of([&] { transports[1]->wait(send); }), "cannot send to rank 2: it is gone");
  EXPECT_EQ(run_error_of([&] { static_cast<void>(transports[1]->post_send(0, 2, sent)); }),
            "cannot send to rank 2: it is gone");
  transports[1]->abort();
  EXPECT_EQ(run_error_of([&] { static_cast<void>(transports[0]->post_receive(0, 1, room)); }),
            "cannot receive from rank 1: it is gone");
}

constexpr std::size_t large = 100'000;

// Whichever end comes first: the receiver copies when it looks for any of its messages, and the
// sender does not.
TEST(ThreadTransport, TheReceiverCopiesWhatIsLarge) {
  const auto transports = thread_transports(3, 1, Seconds{60}, 3);
  const std::array sent{memory_of(1, large), memory_of(2, large), memory_of(3, large)};
  std::array room{memory_of(0, large), memory_of(0, large), memory_of(0, large)};
  Memory small = memory_of(0, 4);
  const auto first = transports[0]->post_send(0, 2, sent[0]);
  const auto into_first = transports[2]->post_receive(0, 0, room[0]);
  const auto into_second = transports[2]->post_receive(0, 1, room[1]);
  const auto second = transports[1]->post_send(0, 2, sent[1]);
  const auto into_third = transports[2]->post_receive(0, 1, room[2]);
  const auto never = transports[2]->post_receive(0, 1, small);
  const auto third = transports[1]->post_send(0, 2, sent[2]);
  EXPECT_FALSE(transports[0]->test(first));
  EXPECT_FALSE(transports[1]->test(second));
  EXPECT_TRUE(transports[2]->test(into_second));  // what it asks for comes before what is older
  EXPECT_TRUE(transports[1]->test(second));
  EXPECT_FALSE(transports[0]->test(first));
  EXPECT_FALSE(transports[2]->test(never));  // copies the oldest
  EXPECT_TRUE(transports[0]->test(first));
  EXPECT_FALSE(transports[1]->test(third));
  EXPECT_FALSE(transports[2]->test(never));
  EXPECT_TRUE(transports[1]->test(third));
  EXPECT_TRUE(transports[2]->test(into_first));
  EXPECT_TRUE(transports[2]->test(into_third));
  EXPECT_EQ(room, sent);
}

TEST(ThreadTransport, WhatIsLargeIsNotCopiedFromARankThatLeft) {
  auto transports = thread_transports(3, 1, Seconds{60}, 3);
  Memory sent = memory_of(1, large);
  Memory room = memory_of(0, large);
  const auto receive = transports[0]->post_receive(0, 1, room);
  static_cast<void>(transports[1]->post_send(0, 0, sent));
  transports[1].reset();
  EXPECT_EQ(run_error_of([&] { transports[0]->wait(receive); }),
            "cannot receive from rank 1: it is gone");
  EXPECT_EQ(room, memory_of(0, large));
  const auto send = transports[2]->post_send(0, 0, sent);
  static_cast<void>(transports[0]->post_receive(0, 2, room));
  transports[0].reset();
  EXPECT_EQ(run_error_of([&] { transports[2]->wait(send); }), "cannot send to rank 0: it is gone");
}

// Ranks leave in the middle of large messages between all.
TEST(ThreadTransport, RanksMayLeaveAtAnyTime) {
  for (int round = 0; round < 100; ++round) {
    auto transports = thread_transports(3, 1, Seconds{60}, 3);
    test::on_ranks(3, [&](int rank) {
      const Memory sent = memory_of(rank, large);
      std::array room{memory_of(9, large), memory_of(9, large)};
      // Goes first: peers read and write the memory until it has left.
      const auto own = std::move(transports[static_cast<std::size_t>(rank)]);
      try {
        for (int i = 0; i < 3 + (round * (rank + 1)) % 7; ++i) {
          std::vector<Transport::Request> requests;
          for (const int offset : {1, 2})
            requests.push_back(own->post_receive(0, (rank + offset) % 3,
                                                 room[static_cast<std::size_t>(offset - 1)]));
          for (const int offset : {1, 2})
            requests.push_back(own->post_send(0, (rank + offset) % 3, sent));
          for (const auto request : requests) own->wait(request);
          for (const int offset : {1, 2})
            ASSERT_EQ(room[static_cast<std::size_t>(offset - 1)],
                      memory_of((rank + offset) % 3, large));
        }
      } catch (const RunError&) {
      }
    });
  }
}

TEST(ThreadTransport, TellsWhoeverAsksOfAPeerThatLeft) {
  const auto transports = thread_transports(3);
  EXPECT_EQ(transports[0]->lost_peer(), -1);
  transports[2]->abort();
  EXPECT_EQ(transports[0]->lost_peer(), 2);
  EXPECT_EQ(transports[2]->lost_peer(), -1);
}

TEST(ThreadTransport, WakesWhoSleepsWhenARankLeaves) {
  auto transports = thread_transports(2);
  test::on_ranks(2, [&](int rank) {
    const auto transport = std::move(transports[static_cast<std::size_t>(rank)]);
    if (rank == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return;
    }
    Memory room = memory_of(0, 4);
    // On a busy machine it is gone before it is asked for something.
    EXPECT_EQ(run_error_of([&] { transport->wait(transport->post_receive(0, 1, room)); }),
              "cannot receive from rank 1: it is gone");
  });
}

TEST(ThreadTransport, SaysWhatDoesNotFit) {
  EXPECT_EQ(test::error_of([] { return thread_transports(0, 1).size(); }),
            "0 ranks with 1 streams; give at least one of each");
  EXPECT_EQ(test::error_of([] { return thread_transports(1, 1, Seconds{0}).size(); }),
            "a patience of 0 s; give more than 0 s");
}

}  // namespace
}  // namespace paceline::runtime

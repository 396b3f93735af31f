// What transport.h promises, as tests that each transport instantiates with a way to run its ranks:
//
//   TransportContract      messages, and every schedule of the catalogue; a job of any size
//   TransportLossContract  ranks that leave, fall silent or disagree; ranks of this process
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <latch>
#include <mutex>
#include <ostream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/channel/endpoint.h"
#include "runtime/channel/messages.h"
#include "runtime/collective/executor.h"
#include "tests/support/collective_runs.h"
#include "tests/support/error_of.h"

namespace paceline::test {

// A transport under test, and how many ranks its jobs have. run() calls `work` for each rank of this
// process, and gives its transport back when `work` returns.
struct TransportJob {
  using Work = std::function<void(const runtime::Endpoint&)>;
  std::string name;
  int ranks = 1;
  std::function<void(int ranks, int streams, Seconds patience, const Work& work)> run;

  void operator()(int streams, const Work& work, Seconds patience = Seconds{60}) const {
    run(ranks, streams, patience, work);
  }
};
inline void PrintTo(const TransportJob& job, std::ostream* out) {
  *out << job.name << " of " << job.ranks;
}

inline std::vector<std::byte> repeated(int value, std::size_t size) {
  return std::vector<std::byte>(size, static_cast<std::byte>(value));
}

class TransportContract : public ::testing::TestWithParam<TransportJob> {};
class TransportLossContract : public ::testing::TestWithParam<TransportJob> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransportLossContract);

TEST_P(TransportContract, KnowsItsJob) {
  GetParam()(3, [](const runtime::Endpoint& end) {
    EXPECT_EQ(end.transport.name(), GetParam().name);
    EXPECT_EQ(end.transport.ranks(), GetParam().ranks);
    EXPECT_EQ(end.transport.rank(), end.channel.rank());
    EXPECT_EQ(end.transport.streams(), 3);
  });
}

// Messages around the ring on two streams, of all sizes up to one that no buffer holds, received in
// another order of streams than they were sent.
TEST_P(TransportContract, KeepsStreamsApartAndMessagesInOrder) {
  if (GetParam().ranks == 1) GTEST_SKIP() << "one rank has nobody to send to";
  static constexpr std::array<std::size_t, 5> sizes{5, 0, 1, std::size_t{5} << 20, 7};
  GetParam()(3, [](const runtime::Endpoint& end) {
    runtime::Transport& transport = end.transport;
    const int ranks = transport.ranks();
    const int next = (transport.rank() + 1) % ranks;
    const int before = (transport.rank() + ranks - 1) % ranks;
    const auto message = [](int rank, int stream, std::size_t i) {
      return repeated(20 * rank + 10 * stream + static_cast<int>(i), sizes[i]);
    };
    std::vector<std::vector<std::byte>> sent;
    std::vector<std::vector<std::byte>> room;
    for (const int stream : {0, 1}) {
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        sent.push_back(message(transport.rank(), stream, i));
        room.push_back(repeated(0, sizes[i]));
      }
    }
    std::vector<runtime::Transport::Request> requests;
    for (std::size_t i = 0; i < sent.size(); ++i)
      requests.push_back(transport.post_send(static_cast<int>(i / sizes.size()), next, sent[i]));
    for (const int stream : {1, 0}) {
      for (std::size_t i = 0; i < sizes.size(); ++i)
        requests.push_back(transport.post_receive(
            stream, before, room[static_cast<std::size_t>(stream) * sizes.size() + i]));
    }
    for (const runtime::Transport::Request request : requests) transport.wait(request);
    for (std::size_t i = 0; i < room.size(); ++i)
      EXPECT_EQ(room[i], message(before, static_cast<int>(i / sizes.size()), i % sizes.size()));
  });
}

// Messages between all ranks, with waits that spin, yield and sleep.
TEST_P(TransportContract, DeliversAmongAllRanks) {
  constexpr int messages = 300;
  GetParam()(3, [](const runtime::Endpoint& end) {
    runtime::Transport& transport = end.transport;
    const int ranks = transport.ranks();
    const int rank = transport.rank();
    for (int i = 0; i < messages; ++i) {
      const auto size = static_cast<std::size_t>(i * 7 % 1000);
      std::vector<std::vector<std::byte>> sent;
      std::vector<std::vector<std::byte>> room;
      std::vector<std::vector<std::byte>> expected;
      // Memory of messages stays where it is while they travel.
      sent.reserve(static_cast<std::size_t>(ranks));
      room.reserve(static_cast<std::size_t>(ranks));
      std::vector<runtime::Transport::Request> requests;
      for (int offset = 1; offset < ranks; offset += 1 + i % 3) {
        const int to = (rank + offset) % ranks;
        const int from = (rank + ranks - offset) % ranks;
        sent.push_back(repeated(rank * 31 + to + i, size));
        room.push_back(repeated(0, size));
        expected.push_back(repeated(from * 31 + rank + i, size));
        requests.push_back(transport.post_send(i % 2, to, sent.back()));
        requests.push_back(transport.post_receive(i % 2, from, room.back()));
      }
      if (i % 50 == rank) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      for (const runtime::Transport::Request request : requests) transport.wait(request);
      ASSERT_EQ(room, expected) << "rank " << rank << ", round " << i;
    }
  });
}

// A receive of data is open on stream 0 while texts and sums travel: they do not land in it.
TEST_P(TransportContract, ControlMessagesAndDataDoNotMeet) {
  GetParam()(3, [](const runtime::Endpoint& end) {
    const int ranks = end.transport.ranks();
    const int rank = end.transport.rank();
    int came = rank;
    runtime::Transport::Request receive;
    const int before = (rank + ranks - 1) % ranks;
    if (ranks > 1)
      receive = end.transport.post_receive(0, before, std::as_writable_bytes(std::span(&came, 1)));
    EXPECT_EQ(runtime::broadcast_text(end.channel, rank == 0 ? "plan" : ""), "plan");
    double sum = 1;
    runtime::sum_over_ranks(end.channel, {&sum, 1});
    EXPECT_EQ(sum, ranks);
    runtime::barrier(end.channel);
    if (ranks > 1)
      end.transport.wait(
          end.transport.post_send(0, (rank + 1) % ranks, std::as_bytes(std::span(&rank, 1))));
    end.transport.wait(receive);
    EXPECT_EQ(came, before);
  });
}

// The buckets that all-reduces leave are compared by hash, now and then.
inline void check_collectives(const runtime::Endpoint& end, const std::vector<Case>& cases,
                              const runtime::ExecutorOptions& options = {}) {
  runtime::Executor executor(end.transport, options);
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Bucket bucket = bucket_of(cases[i], end.transport.rank());
    executor.run(executor.prepare(cases[i].schedule, cases[i].elements, cases[i].type),
                 bucket.data());
    Expected(cases[i]).check(end.transport.rank(), bucket);
    if (cases[i].collective == models::Collective::all_reduce) hash = hash * 31 + hash_of(bucket);
    if (i % 16 != 0 && i + 1 != cases.size()) continue;
    const std::vector<std::string> all = runtime::gather_texts(end.channel, std::to_string(hash));
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      EXPECT_EQ(all[rank], all[0]) << described(cases[i]) << ": rank " << rank;
  }
}

TEST_P(TransportContract, EveryScheduleKeepsItsPromiseForEverySizeAndType) {
  GetParam()(3, [](const runtime::Endpoint& end) {
    check_collectives(end, cases_of_catalogue(end.transport.ranks()));
  });
}

TEST_P(TransportContract, LargeBucketsArriveWhole) {
  std::vector<Case> cases;
  for (const models::CollectiveAlgorithm& algorithm : models::collective_catalogue())
    cases.push_back({std::string(algorithm.name), algorithm.build({.ranks = GetParam().ranks}),
                     50'003, types[cases.size() % 2], cases.size(), algorithm.collective});
  GetParam()(3, [&](const runtime::Endpoint& end) { check_collectives(end, cases); });
}

// What a rank sent before it left still comes.
TEST_P(TransportLossContract, NamesAPeerThatIsGone) {
  GetParam()(1, [](const runtime::Endpoint& end) {
    std::vector<std::byte> room = repeated(0, 4);
    const std::vector<std::byte> sent = repeated(9, 4);
    if (end.transport.rank() == 2) {
      end.transport.wait(end.transport.post_send(0, 0, sent));
      runtime::barrier(end.channel);
      return;
    }
    runtime::Transport::Request first;
    if (end.transport.rank() == 0) first = end.transport.post_receive(0, 2, room);
    EXPECT_EQ(end.transport.lost_peer(), -1);
    runtime::barrier(end.channel);
    std::byte done{};
    if (end.transport.rank() == 1) return end.channel.receive(0, {&done, 1});
    end.transport.wait(first);
    EXPECT_EQ(room, sent);
    EXPECT_EQ(run_error_of([&] { end.transport.wait(end.transport.post_receive(0, 2, room)); }),
              "cannot receive from rank 2: it is gone");
    EXPECT_EQ(end.transport.lost_peer(), 2);
    end.channel.send(1, {&done, 1});
  });
}

TEST_P(TransportLossContract, LosesPatienceWithASilentRank) {
  std::latch is_over(1);
  GetParam()(
      1,
      [&](const runtime::Endpoint& end) {
        if (end.transport.rank() != 0) {
          is_over.wait();
          return;
        }
        std::vector<std::byte> room = repeated(0, 4);
        const auto receive = end.transport.post_receive(0, 1, room);
        const std::string line = "cannot receive from rank 1: nothing came from it for 0.2 s";
        EXPECT_EQ(run_error_of([&] { end.transport.wait(receive); }), line);
        EXPECT_EQ(run_error_of([&] {
                    while (!end.transport.test(receive)) std::this_thread::yield();
                  }),
                  line);
        is_over.count_down();
      },
      Seconds{0.2});
}

// The end says so that learns of it. The other may only see that its peer leaves.
TEST_P(TransportLossContract, SaysThatTheEndsOfAMessageDiffer) {
  std::mutex mutex;
  std::vector<std::string> errors;
  GetParam()(1, [&](const runtime::Endpoint& end) {
    std::vector<std::byte> room = repeated(0, 4);
    const std::vector<std::byte> sent = repeated(1, 5);
    if (end.transport.rank() > 1) return;
    std::string error = run_error_of([&] {
      end.transport.wait(end.transport.rank() == 1 ? end.transport.post_send(0, 0, sent)
                                                   : end.transport.post_receive(0, 1, room));
    });
    const std::lock_guard lock(mutex);
    errors.push_back(std::move(error));
  });
  EXPECT_THAT(errors, ::testing::Contains(::testing::MatchesRegex(
                          "cannot (receive from rank 1|send to rank 0): 5 bytes were sent where 4 "
                          "are received")));
}

}  // namespace paceline::test

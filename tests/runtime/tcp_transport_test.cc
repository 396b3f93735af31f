// The transport by TCP, its ranks as threads of this process: what transport.h promises, and every
// schedule of the catalogue.
#include "runtime/transport/tcp_transport.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <mutex>
#include <vector>

#include "models/base/error.h"
#include "runtime/channel/messages.h"
#include "runtime/channel/tcp_job.h"
#include "runtime/collective/executor.h"
#include "tests/support/collective_runs.h"
#include "tests/support/error_of.h"
#include "tests/support/free_port.h"

namespace paceline::runtime {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(int value, std::size_t size) {
  return Bytes(size, static_cast<std::byte>(value));
}

std::string run_error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const RunError& error) {
    return error.what();
  }
  return "no error";
}

// Each rank with the transport of its end.
void on_job(int ranks, int streams, Seconds patience,
            const std::function<void(const Endpoint&)>& work) {
  const Rendezvous place{"127.0.0.1", test::free_port()};
  test::on_ranks(ranks, [&](int rank) {
    TcpJob job(place, rank, ranks, patience);
    EXPECT_EQ(job.place_on_node().rank, rank);
    EXPECT_EQ(job.place_on_node().ranks, ranks);
    job.open_streams(streams);
    work(job.endpoint());
  });
}

TEST(TcpTransport, SaysWhatItIs) {
  on_job(2, 3, Seconds{60}, [](const Endpoint& end) {
    EXPECT_EQ(end.transport.name(), "tcp");
    EXPECT_EQ(end.transport.ranks(), 2);
    EXPECT_EQ(end.transport.rank(), end.channel.rank());
    EXPECT_EQ(end.transport.streams(), 3);
  });
  EXPECT_EQ(test::error_of([] { return tcp_transport({}, 0, 1, Seconds{0}); }),
            "a patience of 0 s; give more than 0 s");
}

// Messages on two streams, of all sizes up to one that no buffer holds, received in another order of
// streams than they were sent.
TEST(TcpTransport, KeepsStreamsApartAndMessagesInOrder) {
  const std::array<std::size_t, 5> sizes{5, 0, 1, std::size_t{5} << 20, 7};
  on_job(2, 2, Seconds{60}, [&](const Endpoint& end) {
    Transport& transport = end.transport;
    const int peer = 1 - transport.rank();
    std::vector<Bytes> sent;
    std::vector<Bytes> room;
    std::vector<Transport::Request> requests;
    for (int stream = 0; stream < 2; ++stream) {
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        sent.push_back(bytes_of(10 * stream + static_cast<int>(i) + transport.rank(), sizes[i]));
        room.push_back(bytes_of(0, sizes[i]));
      }
    }
    for (std::size_t i = 0; i < sent.size(); ++i)
      requests.push_back(transport.post_send(static_cast<int>(i / sizes.size()), peer, sent[i]));
    for (int stream = 2; stream-- > 0;) {
      for (std::size_t i = 0; i < sizes.size(); ++i)
        requests.push_back(transport.post_receive(
            stream, peer, room[static_cast<std::size_t>(stream) * sizes.size() + i]));
    }
    for (const Transport::Request request : requests) transport.wait(request);
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const int stream = static_cast<int>(i / sizes.size());
      EXPECT_EQ(room[i], bytes_of(10 * stream + static_cast<int>(i % sizes.size()) + peer,
                                  sizes[i % sizes.size()]));
    }
  });
}

// A receive of data is open on stream 0 while texts and sums travel: they do not land in it.
TEST(TcpTransport, ControlMessagesAndDataDoNotMeet) {
  on_job(3, 1, Seconds{60}, [](const Endpoint& end) {
    const int rank = end.transport.rank();
    int came = -1;
    const auto receive =
        end.transport.post_receive(0, (rank + 2) % 3, std::as_writable_bytes(std::span(&came, 1)));
    EXPECT_EQ(broadcast_text(end.channel, rank == 0 ? "plan" : ""), "plan");
    barrier(end.channel);
    end.transport.wait(
        end.transport.post_send(0, (rank + 1) % 3, std::as_bytes(std::span(&rank, 1))));
    end.transport.wait(receive);
    EXPECT_EQ(came, (rank + 2) % 3);
  });
}

TEST(TcpTransport, NamesAPeerThatIsGone) {
  on_job(3, 1, Seconds{60}, [](const Endpoint& end) {
    Bytes room = bytes_of(0, 4);
    const Bytes sent = bytes_of(9, 4);
    if (end.transport.rank() == 2) {  // what it sent before it left still comes
      end.transport.wait(end.transport.post_send(0, 0, sent));
      barrier(end.channel);
      return;
    }
    barrier(end.channel);
    if (end.transport.rank() != 0) return;
    EXPECT_EQ(end.transport.lost_peer(), -1);
    end.transport.wait(end.transport.post_receive(0, 2, room));
    EXPECT_EQ(room, sent);
    EXPECT_EQ(run_error_of([&] { end.transport.wait(end.transport.post_receive(0, 2, room)); }),
              "cannot receive from rank 2: it is gone");
    EXPECT_EQ(end.transport.lost_peer(), 2);
  });
}

TEST(TcpTransport, LosesPatienceWithASilentRank) {
  std::mutex silent;
  silent.lock();
  on_job(2, 1, Seconds{0.2}, [&](const Endpoint& end) {
    if (end.transport.rank() == 1) {
      const std::lock_guard waits(silent);
      return;
    }
    Bytes room = bytes_of(0, 4);
    const auto receive = end.transport.post_receive(0, 1, room);
    EXPECT_EQ(run_error_of([&] { end.transport.wait(receive); }),
              "cannot receive from rank 1: nothing came from it for 0.2 s");
    EXPECT_EQ(run_error_of([&] {
                while (!end.transport.test(receive)) std::this_thread::yield();
              }),
              "cannot receive from rank 1: nothing came from it for 0.2 s");
    silent.unlock();
  });
}

TEST(TcpTransport, SaysThatTheEndsOfAMessageDiffer) {
  on_job(2, 1, Seconds{60}, [](const Endpoint& end) {
    Bytes room = bytes_of(0, 4);
    if (end.transport.rank() == 1)
      end.transport.wait(end.transport.post_send(0, 0, bytes_of(1, 5)));
    else
      EXPECT_EQ(run_error_of([&] { end.transport.wait(end.transport.post_receive(0, 1, room)); }),
                "cannot receive from rank 1: 5 bytes were sent where 4 are received");
    barrier(end.channel);
  });
}

TEST(TcpJob, RefusesRanksWithDifferentPlans) {
  const Rendezvous place{"127.0.0.1", test::free_port()};
  test::on_ranks(2, [&](int rank) {
    TcpJob job(place, rank, 2, Seconds{60});
    EXPECT_EQ(test::error_of([&] {
                job.open_streams(1 + rank);
                return 0;
              }),
              "ranks with different plans; start all ranks with the same options");
  });
}

class ExecutorOnTcp : public testing::TestWithParam<int> {};

TEST_P(ExecutorOnTcp, EveryScheduleIsTheSumForEverySizeAndType) {
  const int ranks = GetParam();
  std::vector<test::Case> cases = test::cases_of_catalogue(ranks);
  for (const models::CollectiveAlgorithm& algorithm : models::all_reduce_catalogue())
    cases.push_back({std::string(algorithm.name), algorithm.build({.ranks = ranks}), 200'003,
                     NumberType::fp16, cases.size()});
  std::vector<std::vector<test::Bucket>> results(
      cases.size(), std::vector<test::Bucket>(static_cast<std::size_t>(ranks)));
  on_job(ranks, 1, Seconds{60}, [&](const Endpoint& end) {
    Executor executor(end.transport);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const test::Case& c = cases[i];
      test::Bucket& bucket = results[i][static_cast<std::size_t>(end.transport.rank())];
      bucket = test::bucket_of(c, end.transport.rank());
      executor.run(executor.prepare(c.schedule, c.elements, c.type), bucket.data());
    }
  });
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (std::size_t r = 1; r < results[i].size(); ++r)
      ASSERT_EQ(results[i][r], results[i][0]) << test::described(cases[i]) << " rank " << r;
    test::check_sum(cases[i], results[i][0]);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExecutorOnTcp, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace paceline::runtime

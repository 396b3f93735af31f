#include "runtime/channel/rank_threads.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "models/base/error.h"
#include "runtime/channel/messages.h"

namespace paceline::runtime {
namespace {

template <class T>
std::span<std::byte> room_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

// A receive of data is open on the transport's first stream while texts and sums travel: they would
// land in it if the channel were a stream of the transport.
TEST(RankThreads, ControlMessagesAndDataDoNotMeet) {
  run_as_threads(3, 1, Seconds{60}, [](const Endpoint& endpoint) {
    Transport& data = endpoint.transport;
    const int before = (data.rank() + 2) % 3;
    const int after = (data.rank() + 1) % 3;
    int came = -1;
    const auto receive = data.post_receive(0, before, room_of(came));
    EXPECT_EQ(broadcast_text(endpoint.channel, data.rank() == 0 ? "plan" : ""), "plan");
    std::array<double, 1> sum = {1};
    sum_over_ranks(endpoint.channel, sum);
    EXPECT_EQ(sum[0], 3);
    const int own = data.rank();
    data.wait(data.post_send(0, after, std::as_bytes(std::span(&own, 1))));
    data.wait(receive);
    EXPECT_EQ(came, before);
  });
}

TEST(RankThreads, NobodyLeavesABarrierBeforeAllAreThere) {
  constexpr int ranks = 5;
  std::atomic<int> arrived = 0;
  run_as_threads(ranks, 1, Seconds{60}, [&](const Endpoint& endpoint) {
    for (int round = 1; round <= 20; ++round) {
      if (endpoint.channel.rank() == round % ranks)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++arrived;
      barrier(endpoint.channel);
      EXPECT_GE(arrived.load(), round * ranks);
      barrier(endpoint.channel);
    }
  });
}

std::string error_of_job(const std::function<void(const Endpoint&)>& work) {
  try {
    run_as_threads(3, 1, Seconds{60}, work);
  } catch (const RunError& error) {
    return error.what();
  }
  return "no error";
}

// Ranks wait on the channel, and on the transport, when rank 1 ends: both are woken at once, and
// the job's error is that of rank 1.
TEST(RankThreads, ARankThatThrowsWakesThoseThatWaitOnEither) {
  std::array<std::string, 3> lost;
  const std::string error = error_of_job([&](const Endpoint& endpoint) {
    const int rank = endpoint.channel.rank();
    if (rank == 1) throw RunError("read the data", "no such file");
    int room = 0;
    try {
      if (rank == 0) endpoint.channel.receive(1, room_of(room));
      if (rank == 2) endpoint.transport.wait(endpoint.transport.post_receive(0, 1, room_of(room)));
    } catch (const RunError& loss) {
      lost[static_cast<std::size_t>(rank)] = loss.what();
      throw;
    }
  });
  EXPECT_EQ(error, "cannot read the data: no such file");
  EXPECT_EQ(lost[0], "cannot receive from rank 1: it is gone");
  EXPECT_EQ(lost[2], "cannot receive from rank 1: it is gone");
}

TEST(RankThreads, AnEndpointThatLeavesIsGoneOnBoth) {
  const std::string error = error_of_job([](const Endpoint& endpoint) {
    if (endpoint.channel.rank() == 1) {
      endpoint.abort();
      return;
    }
    int room = 0;
    endpoint.channel.receive(1, room_of(room));
  });
  EXPECT_EQ(error, "cannot receive from rank 1: it is gone");
}

}  // namespace
}  // namespace paceline::runtime

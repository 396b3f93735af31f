// The executor between processes: started by mpirun, which tests/runtime/collective.cmake does with
// several numbers of ranks. All ranks run the same tests; what each ends with is compared by hash.
//
//   mpi_executor_test              the tests
//   mpi_executor_test silent       rank 1 falls silent: the others say so
//   mpi_executor_test dies         rank 1 ends: the job does
//   mpi_executor_test connections  the lower of two ranks opens their TCP connection
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "models/base/error.h"
#include "runtime/channel/mpi_job.h"
#include "runtime/collective/executor.h"
#include "runtime/transport/launcher.h"
#include "runtime/transport/mpi_transport.h"
#include "tests/support/transport_contract.h"

namespace paceline::runtime {
namespace {

using test::Case;
using test::TransportContract;
using test::TransportJob;

constexpr int streams = 3;
Transport* job = nullptr;    // the data transport of this process
Channel* channel = nullptr;  // its control channel

// The job of this process, whatever it is asked for.
INSTANTIATE_TEST_SUITE_P(OfMpi, TransportContract,
                         testing::Values(TransportJob{
                             .name = "open-mpi",
                             .ranks = launched_rank().value_or(LaunchedRank{}).ranks,
                             .run = [](int, int, Seconds, const TransportJob::Work& work) {
                               work({.channel = *channel, .transport = *job});
                             }}));

void check_all(const std::vector<Case>& cases, const ExecutorOptions& options) {
  test::check_collectives({.channel = *channel, .transport = *job}, cases, options);
}

TEST(MpiExecutor, TheSizeOfMessagesDoesNotChangeTheSum) {
  for (const std::size_t bytes : test::message_sizes)
    check_all(test::cases_in_messages(job->ranks(), bytes), {.message_bytes = bytes});
}

TEST(MpiExecutor, HoldingSendsBackDoesNotChangeTheSum) {
  check_all(test::cases_in_messages(job->ranks(), 44), {.message_bytes = 44, .ahead_bytes = 88});
}

TEST(MpiExecutor, RunsStreamsAtTheSameTimeAndCollectivesOfAStreamInOrder) {
  const int p = job->ranks();
  Executor executor(*job, {.message_bytes = 4096});
  std::vector<Collective> collectives;
  std::vector<std::vector<float>> buckets;
  const auto catalogue = models::all_reduce_catalogue();
  for (std::size_t i = 0; i < 3 * catalogue.size(); ++i) {
    const auto elements = static_cast<std::int64_t>(i * i * 100 + i);
    collectives.push_back(executor.prepare(catalogue[i / 3].build({.ranks = p}), elements,
                                           NumberType::fp32, static_cast<int>(i % streams)));
    buckets.emplace_back(static_cast<std::size_t>(elements));
  }
  for (int round = 0; round < 5; ++round) {
    // Each rank takes the streams in another order; each stream's collectives are in order.
    for (std::size_t stream = 0; stream < streams; ++stream) {
      const std::size_t own = (stream + static_cast<std::size_t>(job->rank())) % streams;
      for (std::size_t i = own; i < collectives.size(); i += streams) {
        std::fill(buckets[i].begin(), buckets[i].end(), static_cast<float>(job->rank() + round));
        executor.start(collectives[i], buckets[i].data());
      }
    }
    for (std::size_t i = 0; i < collectives.size(); ++i) {
      executor.wait(collectives[i]);
      const auto sum = static_cast<float>(p * (p - 1) / 2 + p * round);
      EXPECT_EQ(buckets[i], std::vector<float>(buckets[i].size(), sum)) << i;
    }
  }
}

TEST(MpiTransport, KnowsItsRankAsTheLauncherDoes) {
  const auto launched = launched_rank();
  ASSERT_TRUE(launched.has_value());
  EXPECT_EQ(launched->rank, job->rank());
  EXPECT_EQ(launched->ranks, job->ranks());
}

TEST(MpiTransport, TheLibrarysAllReduceIsTheSumOverTheFirstRanks) {
  for (int round = 0; round < 2; ++round) {
    for (int ranks = 1; ranks <= job->ranks(); ++ranks) {
      if (job->rank() >= ranks) continue;
      std::vector<float> bucket(1000, static_cast<float>(job->rank() + round));
      job->all_reduce(bucket, ranks);
      const auto sum = static_cast<float>(ranks * (ranks - 1) / 2 + ranks * round);
      EXPECT_EQ(bucket, std::vector<float>(bucket.size(), sum)) << ranks;
    }
  }
}

// Rank 1 takes part in one all-reduce and not in the next.
int run_without_rank_1(bool dies) {
  const auto transport = mpi_transport(1, Seconds{0.5});
  std::vector<float> bucket(1000, 1.0F);
  Executor executor(*transport);
  const Collective collective =
      executor.prepare(models::ring_all_reduce(transport->ranks()), 1000, NumberType::fp32);
  executor.run(collective, bucket.data());
  if (transport->rank() == 1) {
    if (dies) throw RunError("go on", "rank 1 was told to end");
    std::this_thread::sleep_for(std::chrono::seconds(60));
  }
  executor.run(collective, bucket.data());
  return 0;
}

// The port of a socket's own end, or of its peer's; 0 if it has none.
int port_of(int socket, int (*end)(int, sockaddr*, socklen_t*)) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  const bool is_internet = end(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
                           address.sin_family == AF_INET;
  return is_internet ? ntohs(address.sin_port) : 0;
}

// Open MPI listens on the first free port from 1024, below those that Linux gives to who connects.
int check_connections() {
  int first_of_clients = 32768;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first_of_clients;
  const auto transport = mpi_transport(streams, Seconds{60});
  int accepted = 0;
  int opened = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int descriptor = std::stoi(entry.path().filename());
    const int own = port_of(descriptor, getsockname);
    const int peer = port_of(descriptor, getpeername);
    if (peer == 0) continue;
    accepted += own < first_of_clients ? 1 : 0;
    opened += peer < first_of_clients ? 1 : 0;
  }
  const bool right =
      accepted == transport->rank() && opened == transport->ranks() - 1 - transport->rank();
  if (!right) std::fprintf(stderr, "rank %d: %d, %d\n", transport->rank(), accepted, opened);
  return right ? 0 : 1;
}

}  // namespace
}  // namespace paceline::runtime

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  try {
    if (argc > 1 && std::string(argv[1]) == "connections")
      return paceline::runtime::check_connections();
    if (argc > 1) return paceline::runtime::run_without_rank_1(std::string(argv[1]) == "dies");
    paceline::runtime::MpiJob mpi(paceline::runtime::streams, paceline::Seconds{60});
    paceline::runtime::job = &mpi.endpoint().transport;
    paceline::runtime::channel = &mpi.endpoint().channel;
    return RUN_ALL_TESTS();
  } catch (const paceline::RunError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

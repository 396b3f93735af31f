// What the double of NCCL finds between ranks that are processes. A GPU is not for processes that fork
// once CUDA is in use, so these tests are the double's; those of nccl_test.cc run over processes, too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda/contract/nccl_rig.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t n = 12;

// How a process ended, and what it wrote to standard error.
struct Ended {
  int status = 0;
  std::string said;
};

// Runs rank(r) in a process each.
std::vector<Ended> ended(int ranks, const std::function<void(int)>& rank) {
  std::fflush(nullptr);
  std::vector<std::pair<pid_t, int>> processes;
  for (int r = 0; r < ranks; ++r) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    const pid_t process = ::fork();
    if (process == 0) {
      ::dup2(ends[1], STDERR_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      EXPECT_OK(cudaSetDevice(r));
      rank(r);
      std::fflush(nullptr);
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    ::close(ends[1]);
    processes.emplace_back(process, ends[0]);
  }
  std::vector<Ended> results;
  for (const auto& [process, pipe] : processes) {
    Ended& result = results.emplace_back();
    std::array<char, 4096> text{};
    for (ssize_t got = 0; (got = ::read(pipe, text.data(), text.size())) > 0;)
      result.said.append(text.data(), static_cast<std::size_t>(got));
    ::close(pipe);
    ::waitpid(process, &result.status, 0);
  }
  return results;
}

class NcclProcesses : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_on_host::nccl::ranks_are_processes())
      GTEST_SKIP() << "is run with --ranks-as-processes";
    cuda_on_host::reset(cuda_on_host::Order::random, 3);
    cuda_on_host::nccl::reset();
  }
};

// The error that a communicator comes to have, and NCCL's words on it.
std::pair<ncclResult_t, std::string> asynchronous_error(ncclComm_t comm) {
  ncclResult_t error = ncclSuccess;
  while (error == ncclSuccess) {
    EXPECT_NCCL(ncclCommGetAsyncError(comm, &error));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {error, ncclGetLastError(comm)};
}

TEST_F(NcclProcesses, AKilledRankIsAnErrorOfTheOthersThatNamesIt) {
  const ncclUniqueId id = unique_id();
  const auto results = ended(3, [&](int r) {
    Rank rank(r, 3, id);
    const Floats data(n);
    put(data, std::vector<float>(n, 1), rank.stream());
    EXPECT_NCCL(ncclAllReduce(data, data, n, ncclFloat32, ncclSum, rank.comm(), rank.stream()));
    EXPECT_EQ(fetch(data, n, rank.stream())[0], 3);
    if (r == 1) ::raise(SIGKILL);
    EXPECT_NCCL(ncclAllReduce(data, data, n, ncclFloat32, ncclSum, rank.comm(), rank.stream()));
    const auto [error, words] = asynchronous_error(rank.comm());
    EXPECT_EQ(error, ncclRemoteError);
    // Rank 0 may see that the other has seen it, and has left.
    EXPECT_THAT(words, testing::AnyOf("rank 1 has died", "rank 0 has left", "rank 2 has left"));
    if (r == 0) EXPECT_NE(words, "rank 0 has left");
    EXPECT_NCCL(ncclCommAbort(rank.release()));
    EXPECT_OK(cudaStreamSynchronize(rank.stream()));
  });
  EXPECT_EQ(results[0].status, 0) << results[0].said;
  EXPECT_TRUE(WIFSIGNALED(results[1].status));
  EXPECT_EQ(results[2].status, 0) << results[2].said;
}

TEST_F(NcclProcesses, AnAbortIsAnErrorOfTheOthers) {
  const ncclUniqueId id = unique_id();
  for (const Ended& end : ended(2, [&](int r) {
         Rank rank(r, 2, id);
         const Floats data(n);
         if (r == 0) {
           EXPECT_NCCL(ncclRecv(data, n, ncclFloat32, 1, rank.comm(), rank.stream()));
           EXPECT_EQ(asynchronous_error(rank.comm()),
                     std::pair(ncclRemoteError, std::string("rank 1 has left")));
         }
         EXPECT_NCCL(ncclCommAbort(rank.release()));
         EXPECT_OK(cudaStreamSynchronize(rank.stream()));
       }))
    EXPECT_EQ(end.status, 0) << end.said;
}

TEST_F(NcclProcesses, NamesBothSidesOfAMismatch) {
  const ncclUniqueId id = unique_id();
  const auto results = ended(2, [&](int r) {
    const Rank rank(r, 2, id);
    const Floats data(n);
    if (r == 0)
      static_cast<void>(ncclSend(data, 10, ncclFloat32, 1, rank.comm(), rank.stream()));
    else
      static_cast<void>(ncclRecv(data, 11, ncclFloat32, 0, rank.comm(), rank.stream()));
    static_cast<void>(cudaStreamSynchronize(rank.stream()));
  });
  for (const Ended& end : results) {
    EXPECT_TRUE(WIFSIGNALED(end.status));
    EXPECT_THAT(end.said, HasSubstr("mismatch: rank "));
    EXPECT_THAT(end.said, HasSubstr("rank 0 send #0 of 10 float32 to rank 1"));
    EXPECT_THAT(end.said, HasSubstr("rank 1 receive #0 of 11 float32 from rank 0"));
  }
}

// Both send first, without a group. A deadlock is one after a while, since nobody sees all ranks.
TEST_F(NcclProcesses, NamesBothSidesOfADeadlock) {
  const ncclUniqueId id = unique_id();
  const auto results = ended(2, [&](int r) {
    const Rank rank(r, 2, id);
    const Floats data(n);
    const int peer = 1 - r;
    static_cast<void>(ncclSend(data, n, ncclFloat32, peer, rank.comm(), rank.stream()));
    static_cast<void>(ncclRecv(data, n, ncclFloat32, peer, rank.comm(), rank.stream()));
    static_cast<void>(cudaStreamSynchronize(rank.stream()));
  });
  // The second to look may find that the first has died, and its part is still there.
  EXPECT_THAT(results[0].said + results[1].said, HasSubstr("deadlock"));
  for (std::size_t r = 0; r < 2; ++r) {
    EXPECT_TRUE(WIFSIGNALED(results[r].status));
    const std::string own = std::to_string(r);
    const std::string peer = std::to_string(1 - r);
    EXPECT_THAT(results[r].said, HasSubstr("rank " + own + " send #0 of 12 float32 to rank " +
                                           peer + ": rank " + peer + " receive-" + own + "-" +
                                           peer + "-0 is behind others of its stream"));
  }
}

TEST_F(NcclProcesses, TwoRanksOnOneDeviceAreRefused) {
  const ncclUniqueId id = unique_id();
  for (const Ended& end : ended(2, [&](int r) {
         EXPECT_OK(cudaSetDevice(0));
         ncclComm_t comm = nullptr;
         EXPECT_EQ(ncclCommInitRank(&comm, 2, id, r), ncclInvalidUsage);
         EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("Duplicate GPU detected"));
       }))
    EXPECT_EQ(end.status, 0) << end.said;
}

TEST_F(NcclProcesses, TwoProcessesThatAreOneRankAreRefused) {
  const ncclUniqueId id = unique_id();
  const auto results = ended(2, [&](int) {
    ncclComm_t comm = nullptr;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    static_cast<void>(ncclCommInitRankConfig(&comm, 2, id, 1, &config));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  });
  EXPECT_THAT(results[0].said + results[1].said,
              HasSubstr("ncclCommInitRank: two processes say that they are rank 1"));
}

}  // namespace

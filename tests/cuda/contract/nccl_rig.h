// What contract tests of NCCL share: ranks as threads, each with a device of its own; or as processes,
// on the doubles and with CUDA_ON_HOST_RANKS in the environment.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda/contract/rig.h"
#include "tests/support/cuda_on_host/nccl_control.h"

namespace cuda_contract {

#define EXPECT_NCCL(call) EXPECT_EQ((call), ncclSuccess)
#define ASSERT_NCCL(call) ASSERT_EQ((call), ncclSuccess)

// Skips a test that needs more GPUs than there are.
#define PACELINE_NEEDS_DEVICES(count)                                            \
  do {                                                                           \
    int devices = 0;                                                             \
    ASSERT_OK(cudaGetDeviceCount(&devices));                                     \
    if (devices < (count))                                                       \
      GTEST_SKIP() << "needs " << (count) << " GPUs, and there are " << devices; \
  } while (false)

// Runs rank(r) in a process each, whose current device is r, and looks that it left nothing behind.
// What it writes into variables stays there.
inline void on_processes(int ranks, const std::function<void(int)>& rank) {
  std::vector<pid_t> processes;
  std::fflush(nullptr);
  for (int r = 0; r < ranks; ++r) {
    processes.push_back(::fork());
    if (processes.back() != 0) continue;
    EXPECT_OK(cudaSetDevice(r));
    rank(r);
    EXPECT_EQ(cuda_on_host::nccl::live_communicators(), 0);
    EXPECT_THAT(cuda_on_host::races(), testing::IsEmpty());
    EXPECT_THAT(cuda_on_host::leaks(), testing::IsEmpty());
    std::fflush(nullptr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  for (std::size_t r = 0; r < processes.size(); ++r) {
    int status = 0;
    ::waitpid(processes[r], &status, 0);
    EXPECT_EQ(status, 0) << "of rank " << r;
  }
}

// Runs rank(r) on a thread each, whose current device is r.
inline void on_ranks(int ranks, const std::function<void(int)>& rank) {
  if (cuda_on_host::nccl::ranks_are_processes()) return on_processes(ranks, rank);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&rank, r] {
      EXPECT_OK(cudaSetDevice(r));
      rank(r);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

inline ncclUniqueId unique_id() {
  ncclUniqueId id;
  EXPECT_NCCL(ncclGetUniqueId(&id));
  return id;
}

// A rank with a communicator, a stream and some numbers.
class Rank {
 public:
  Rank(int rank, int ranks, const ncclUniqueId& id) : rank_(rank) {
    EXPECT_NCCL(ncclCommInitRank(&comm_, ranks, id, rank));
  }
  ~Rank() {
    if (comm_ != nullptr) EXPECT_NCCL(ncclCommDestroy(comm_));
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  [[nodiscard]] ncclComm_t comm() const { return comm_; }
  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  [[nodiscard]] int rank() const { return rank_; }
  // Gives the communicator up.
  ncclComm_t release() { return std::exchange(comm_, nullptr); }

 private:
  int rank_;
  ncclComm_t comm_ = nullptr;
  Stream stream_;
};

// Copies to the device, and waits.
inline void put(float* device, const std::vector<float>& values, cudaStream_t stream) {
  EXPECT_OK(cudaMemcpyAsync(device, values.data(), values.size() * sizeof(float),
                            cudaMemcpyHostToDevice, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
}

// As in_every_order(), with the double of NCCL as it is at first, and no rank left over.
template <class Body>
void in_every_order_of_nccl(int seeds, Body body) {
  in_every_order(seeds, [&] {
    cuda_on_host::nccl::reset();
    body();
    EXPECT_EQ(cuda_on_host::nccl::live_communicators(), 0);
    EXPECT_THAT(cuda_on_host::races(), testing::IsEmpty());
    EXPECT_THAT(cuda_on_host::leaks(), testing::IsEmpty());
  });
}

}  // namespace cuda_contract

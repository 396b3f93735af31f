// The double's scheduler: its orders, and that the same seed repeats the same schedule.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "tests/cuda/contract/kernels.h"
#include "tests/cuda/contract/rig.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names
using cuda_on_host::Order;

constexpr std::size_t n = 10;

class CudaSchedule : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_on_host::present()) GTEST_SKIP() << "a check of the double";
  }
};

// Twelve kernels in three streams, and the hash of how they ran.
std::uint64_t hash_of(Order order, std::uint64_t seed) {
  cuda_on_host::reset(order, seed);
  const Stream streams[3];
  const Floats a(3 * n);
  for (int i = 0; i < 4; ++i)
    for (std::size_t s = 0; s < 3; ++s)
      EXPECT_OK(start_fill(streams[s], a + s * n, static_cast<float>(i), n));
  EXPECT_OK(cudaDeviceSynchronize());
  return cuda_on_host::schedule_hash();
}

TEST_F(CudaSchedule, IsTheSameForTheSameSeed) {
  for (const Order order : all_orders)
    for (std::uint64_t seed = 1; seed <= 20; ++seed)
      EXPECT_EQ(hash_of(order, seed), hash_of(order, seed));
}

TEST_F(CudaSchedule, DiffersBetweenSeedsUnlessItIsEager) {
  std::set<std::uint64_t> eager, random;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    eager.insert(hash_of(Order::eager, seed));
    random.insert(hash_of(Order::random, seed));
  }
  EXPECT_EQ(eager.size(), 1U);
  EXPECT_GT(random.size(), 15U);
}

TEST_F(CudaSchedule, RandomRunsSomeEarlyAndSomeLate) {
  int early = 0;
  constexpr int seeds = 100;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    cuda_on_host::reset(Order::random, seed);
    const Stream stream;
    const Event start(cudaEventDefault), end(cudaEventDefault);
    EXPECT_OK(cudaEventRecord(start, stream));
    EXPECT_OK(cudaEventRecord(end, stream));
    float ms = 0;  // asking for a time, unlike a query, runs nothing
    early += cudaEventElapsedTime(&ms, start, end) == cudaSuccess ? 1 : 0;
    EXPECT_OK(cudaStreamSynchronize(stream));
  }
  EXPECT_GT(early, 5);
  EXPECT_LT(early, seeds - 5);
}

TEST_F(CudaSchedule, EagerRunsAtOnceAndLatestOnlyWhatIsWaitedFor) {
  for (const Order order : {Order::eager, Order::latest}) {
    cuda_on_host::reset(order, 1);
    const Stream first, second;
    const Floats a(n), b(n);
    for (int i = 0; i < 3; ++i) EXPECT_OK(start_fill(first, a, 1, n));
    EXPECT_OK(start_fill(second, b, 1, n));
    const cudaError_t at_once = order == Order::eager ? cudaSuccess : cudaErrorNotReady;
    EXPECT_EQ(cudaStreamQuery(first), at_once);
    EXPECT_OK(cudaStreamSynchronize(second));
    EXPECT_EQ(cudaStreamQuery(first), at_once);  // nobody waits for it
    EXPECT_OK(cudaStreamSynchronize(first));
  }
}

// A program may run for ever: it is not remembered.
TEST_F(CudaSchedule, RemembersABoundedNumberOfAccesses) {
  cuda_on_host::reset(Order::random, 1);
  const Stream first, second;
  const Event event;
  const Floats a(n), b(n);
  std::size_t most = 0;
  for (int i = 0; i < 500; ++i) {
    EXPECT_OK(start_fill(first, a, 1, n));
    EXPECT_OK(cudaEventRecord(event, first));
    EXPECT_OK(cudaStreamWaitEvent(second, event, 0));
    EXPECT_OK(start_combine(second, b, a, 1, 1, 0, n));
    EXPECT_OK(cudaEventRecord(event, second));
    EXPECT_OK(cudaStreamWaitEvent(first, event, 0));
    most = std::max(most, cuda_on_host::remembered_accesses());
  }
  EXPECT_LE(most, 6U);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(cuda_on_host::remembered_accesses(), 0U);
  EXPECT_THAT(cuda_on_host::races(), testing::IsEmpty());
}

// Threads that know nothing of each other, each with a device of its own.
TEST_F(CudaSchedule, ServesThreads) {
  for (const Order order : all_orders) {
    cuda_on_host::reset(order, 1);
    std::vector<std::thread> threads;
    for (int device = 0; device < 4; ++device)
      threads.emplace_back([device] {
        EXPECT_OK(cudaSetDevice(device));
        const Stream stream;
        const Floats a(n);
        EXPECT_OK(start_fill(stream, a, 0, n));
        for (int i = 0; i < 50; ++i) {
          EXPECT_OK(start_combine(stream, a, a, 1, 0, 1, n));
          if (i % 10 == 0) EXPECT_OK(cudaStreamSynchronize(stream));
        }
        EXPECT_THAT(fetch(a, n, stream), testing::Each(50.F));
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT(cuda_on_host::races(), testing::IsEmpty());
    EXPECT_THAT(cuda_on_host::leaks(), testing::IsEmpty());
  }
}

}  // namespace

// Kernels of the three shapes run, and launches that cannot run return CUDA's errors.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "tests/cuda/contract/kernels.h"
#include "tests/cuda/contract/rig.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names

std::vector<float> counted(std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i % 7);
  return x;
}

TEST(CudaKernel, RunsOnEveryElement) {
  in_every_order(3, [] {
    constexpr std::size_t n = 1000;
    const Stream stream;
    const Floats x(n), y(n);
    const std::vector<float> host = counted(n);
    ASSERT_OK(cudaMemcpyAsync(x, host.data(), n * sizeof(float), cudaMemcpyHostToDevice, stream));
    ASSERT_OK(start_fill(stream, y, 1, n));
    ASSERT_OK(start_combine(stream, y, x, 2, 3, 4, n));
    const std::vector<float> result = fetch(y, n, stream);
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(result[i], 2 * host[i] + 3 + 4) << i;
    EXPECT_THAT(cuda_on_host::races(), testing::IsEmpty());
  });
}

TEST(CudaKernel, SumsByPhasesAndByShuffles) {
  in_every_order(3, [] {
    for (const std::size_t n : {std::size_t{1}, std::size_t{255}, std::size_t{1000}}) {
      const Stream stream;
      const Floats x(n), sums(2);
      const std::vector<float> host = counted(n);
      float sum = 0;
      for (const float value : host) sum += value;  // small integers: exact in any order
      ASSERT_OK(cudaMemcpyAsync(x, host.data(), n * sizeof(float), cudaMemcpyHostToDevice, stream));
      ASSERT_OK(start_phased_sum(stream, sums, x, n));
      ASSERT_OK(start_cooperative_sum(stream, sums + 1, x, n));
      EXPECT_THAT(fetch(sums, 2, stream), testing::ElementsAre(sum, sum));
    }
  });
}

TEST(CudaKernel, ReadsWhatItsNeighbourWroteAPhaseBefore) {
  in_every_order(10, [] {
    for (const unsigned distance : {1U, 63U}) {
      const Stream stream;
      const Floats y(64);
      ASSERT_OK(start_neighbour(stream, y, distance));
      const std::vector<float> result = fetch(y, 64, stream);
      for (unsigned t = 0; t < 64; ++t)
        ASSERT_EQ(result[t], static_cast<float>((t + distance) % 64)) << t;
    }
  });
}

TEST(CudaKernel, ThatCannotBeLaunchedReturnsAnError) {
  in_every_order(1, [] {
    const Stream stream;
    const Floats y(1024);
    EXPECT_EQ(start_with_shared_memory(stream, y, 1056, 0), cudaErrorInvalidValue);
    EXPECT_EQ(start_with_shared_memory(stream, y, 0, 0), cudaErrorInvalidValue);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
    ASSERT_OK(start_with_shared_memory(stream, y, 1024, 0));
    EXPECT_EQ(fetch(y, 1024, stream)[1023], 1023);
  });
}

TEST(CudaKernel, HasMoreThan48KiBOfSharedMemoryOnlyIfItIsAllowed) {
  in_every_order(1, [] {
    const Stream stream;
    const Floats y(32);
    constexpr std::size_t much = std::size_t{64} << 10U;
    EXPECT_EQ(start_with_shared_memory(stream, y, 32, much), cudaErrorInvalidValue);
    static_cast<void>(cudaGetLastError());
    ASSERT_OK(allow_shared_memory(much));
    EXPECT_OK(start_with_shared_memory(stream, y, 32, much));
    EXPECT_OK(cudaStreamSynchronize(stream));
    EXPECT_EQ(allow_shared_memory(std::size_t{1} << 20U), cudaErrorInvalidValue);
    static_cast<void>(cudaGetLastError());
    ASSERT_OK(allow_shared_memory(std::size_t{48} << 10U));  // as it was
  });
}

// Below: what the double finds in kernels.
class CudaKernelOnTheDouble : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_on_host::present()) GTEST_SKIP() << "a check of the double";
    cuda_on_host::reset(cuda_on_host::Order::random, 1);
  }
};

TEST_F(CudaKernelOnTheDouble, WithoutABodyOnTheHostItIsNamed) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(start_without_body(nullptr), cudaErrorInvalidDeviceFunction);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("kernel cuda_contract::(anonymous namespace)::without_body has no "
                                 "host body"));
}

TEST_F(CudaKernelOnTheDouble, ABarrierThatSomeThreadsMissBreaksTheDevice) {
  for (const auto start : {start_divergent_barrier, start_divergent_shuffle}) {
    cuda_on_host::reset(cuda_on_host::Order::latest, 1);
    cudaStream_t stream = nullptr;
    ASSERT_OK(cudaStreamCreate(&stream));
    ASSERT_OK(start(stream));  // the error comes later
    for (int again = 0; again < 2; ++again) {
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
      EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
    }
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorLaunchFailure);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorLaunchFailure);
    EXPECT_THAT(cuda_on_host::leaks(), testing::IsEmpty());
  }
}

// The order of threads is drawn: a neighbour above and one below are seen to be missing.
TEST_F(CudaKernelOnTheDouble, AForgottenBarrierShows) {
  for (const unsigned distance : {1U, 63U}) {
    int seen = 0;
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      cuda_on_host::reset(cuda_on_host::Order::eager, seed);
      const Stream stream;
      const Floats y(64);
      ASSERT_OK(start_forgotten_barrier(stream, y, distance));
      int wrong = 0;
      for (const float value : fetch(y, 64, stream)) wrong += std::isnan(value) ? 1 : 0;
      seen += wrong > 1 ? 1 : 0;  // one of them is wrong in every order
    }
    EXPECT_GT(seen, 10) << distance;
  }
}

TEST_F(CudaKernelOnTheDouble, WritesBeyondSharedMemoryBreakTheDevice) {
  cuda_on_host::reset(cuda_on_host::Order::eager, 1);
  cudaStream_t stream = nullptr;
  ASSERT_OK(cudaStreamCreate(&stream));
  ASSERT_OK(start_shared_overrun(stream));
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
}

TEST_F(CudaKernelOnTheDouble, OrdersOfElementsAndBlocksAreDrawn) {
  std::set<float> elements, blocks;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    cuda_on_host::reset(cuda_on_host::Order::eager, seed);
    const Stream stream;
    const Floats y(2);
    ASSERT_OK(start_last(stream, y, 1000));
    ASSERT_OK(start_last_block(stream, y + 1, 10));
    const std::vector<float> last = fetch(y, 2, stream);
    elements.insert(last[0]);
    blocks.insert(last[1]);
  }
  EXPECT_GT(elements.size(), 10U);
  EXPECT_GT(blocks.size(), 5U);
}

}  // namespace

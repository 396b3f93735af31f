// Kernels of the three shapes run, and launches that cannot run return CUDA's errors.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace

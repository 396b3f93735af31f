// What streams and events promise: order within a stream, and between streams only by events.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cuda/contract/kernels.h"
#include "tests/cuda/contract/rig.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names
using testing::Each;
using testing::IsEmpty;

constexpr std::size_t n = 300;

TEST(CudaStream, AWaitForAnEventOrdersTwoStreams) {
  in_every_order(20, [] {
    const Stream first, second;
    const Event filled;
    const Floats a(n);
    ASSERT_OK(start_fill(first, a, 2, n));
    ASSERT_OK(cudaEventRecord(filled, first));
    ASSERT_OK(cudaStreamWaitEvent(second, filled, 0));
    ASSERT_OK(start_combine(second, a, a, 1, 1, 0, n));
    EXPECT_THAT(fetch(a, n, second), Each(4.F));
    EXPECT_THAT(cuda_on_host::races(), IsEmpty());
  });
}

}  // namespace

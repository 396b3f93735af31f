// Errors that a test asks of the double: of the n-th call of a function, and of a device.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cuda/contract/kernels.h"
#include "tests/cuda/contract/rig.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names
using testing::Each;

constexpr std::size_t n = 20;

TEST(CudaError, IsRememberedUntilItIsTaken) {
  in_every_order(1, [] {
    EXPECT_EQ(cudaSetDevice(1000), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
    const Stream stream;  // success does not take it back
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  });
}

TEST(CudaError, HasANameAndWords) {
  in_every_order(1, [] {
    EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
    EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    EXPECT_STREQ(cudaGetErrorName(cudaErrorNotReady), "cudaErrorNotReady");
    EXPECT_STREQ(cudaGetErrorString(cudaErrorNotReady), "device not ready");
    EXPECT_STREQ(cudaGetErrorName(cudaErrorStreamCaptureUnsupported),
                 "cudaErrorStreamCaptureUnsupported");
    EXPECT_STREQ(cudaGetErrorString(cudaErrorLaunchFailure), "unspecified launch failure");
    EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(12345)), "unrecognized error code");
  });
}

class CudaFault : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_on_host::present()) GTEST_SKIP() << "faults are the double's";
    cuda_on_host::reset(cuda_on_host::Order::latest, 1);
  }
};

TEST_F(CudaFault, ComesAtTheCallThatWasNamedAndOnlyThere) {
  cuda_on_host::fail("cudaMalloc", 2, cudaErrorMemoryAllocation);
  void* first = nullptr;
  void* second = nullptr;
  ASSERT_OK(cudaMalloc(&first, 4));
  EXPECT_EQ(cudaMalloc(&second, 4), cudaErrorMemoryAllocation);
  EXPECT_EQ(second, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  ASSERT_OK(cudaMalloc(&second, 4));
  EXPECT_EQ(cuda_on_host::calls("cudaMalloc"), 3);
  EXPECT_EQ(cuda_on_host::all_calls(), 4);
  ASSERT_OK(cudaFree(first));
  ASSERT_OK(cudaFree(second));
}

TEST_F(CudaFault, OfACallThatReleasesIsOnlyReported) {
  void* memory = nullptr;
  cudaStream_t stream = nullptr;
  ASSERT_OK(cudaMalloc(&memory, 4));
  ASSERT_OK(cudaStreamCreate(&stream));
  cuda_on_host::fail("cudaFree", 1, cudaErrorUnknown);
  cuda_on_host::fail("cudaStreamDestroy", 1, cudaErrorUnknown);
  EXPECT_EQ(cudaFree(memory), cudaErrorUnknown);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorUnknown);
  EXPECT_THAT(cuda_on_host::leaks(), testing::IsEmpty());
}

TEST_F(CudaFault, OfADeviceComesLateAndStays) {
  cudaStream_t stream = nullptr;
  ASSERT_OK(cudaStreamCreate(&stream));
  float* a = nullptr;
  ASSERT_OK(cudaMalloc(reinterpret_cast<void**>(&a), n * sizeof(float)));
  std::vector<float> host(n);
  cuda_on_host::fail_device(0, 2, cudaErrorIllegalAddress);
  ASSERT_OK(start_fill(stream, a, 1, n));
  ASSERT_OK(start_fill(stream, a, 2, n));
  ASSERT_OK(start_fill(stream, a, 3, n));
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  EXPECT_EQ(start_fill(stream, a, 4, n), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaMemcpyAsync(host.data(), a, 4, cudaMemcpyDefault, stream), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaFree(a), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorIllegalAddress);
  // Another device goes on.
  ASSERT_OK(cudaSetDevice(1));
  const Stream other;
  const Floats b(n);
  ASSERT_OK(start_fill(other, b, 5, n));
  EXPECT_THAT(fetch(b, n, other), Each(5.F));
  EXPECT_THAT(cuda_on_host::leaks(), testing::SizeIs(2));
}

TEST_F(CudaFault, OfADeviceComesAtTheOperationThatWasNamed) {
  for (int number = 1; number <= 3; ++number) {
    cuda_on_host::reset(cuda_on_host::Order::eager, 1);
    cudaStream_t stream = nullptr;
    void* a = nullptr;
    ASSERT_OK(cudaStreamCreate(&stream));
    ASSERT_OK(cudaMalloc(&a, 4));
    cuda_on_host::fail_device(0, number, cudaErrorECCUncorrectable);
    for (int i = 1; i <= 3; ++i) {
      const bool broken_before = i > number;
      EXPECT_EQ(cudaMemsetAsync(a, 0, 4, stream),
                broken_before ? cudaErrorECCUncorrectable : cudaSuccess)
          << number << " " << i;
    }
  }
}

// Nothing runs on a broken device, and events and waits are no operations.
TEST_F(CudaFault, OfADeviceEndsItsWork) {
  for (const cuda_on_host::Order order : all_orders) {
    cuda_on_host::reset(order, 1);
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
    void* memory = nullptr;
    ASSERT_OK(cudaStreamCreate(&stream));
    ASSERT_OK(cudaEventCreate(&event));
    ASSERT_OK(cudaMallocHost(&memory, 2 * sizeof(float)));
    auto* const value = static_cast<float*>(memory);
    ASSERT_OK(start_fill(stream, value, 0, 2));
    ASSERT_OK(cudaStreamSynchronize(stream));
    cuda_on_host::fail_device(0, 2, cudaErrorIllegalAddress);
    ASSERT_OK(cudaEventRecord(event, stream));
    ASSERT_OK(cudaStreamWaitEvent(stream, event, 0));
    ASSERT_OK(start_fill(stream, value, 1, 1));
    static_cast<void>(start_fill(stream, value, 2, 1));
    static_cast<void>(start_fill(stream, value + 1, 3, 1));
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
    EXPECT_EQ(value[0], 1);
    EXPECT_EQ(value[1], 0);
  }
}

TEST_F(CudaFault, AMachineWithoutADevice) {
  cuda_on_host::set_devices(0);
  int count = 7;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(cudaSetDevice(0), cudaErrorNoDevice);
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreate(&stream), cudaErrorNoDevice);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorNoDevice);
  EXPECT_EQ(cudaMallocHost(&memory, 4), cudaErrorNoDevice);
}

}  // namespace

// Devices: which one a thread uses, and what is bound to one.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "tests/cuda/contract/kernels.h"
#include "tests/cuda/contract/rig.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names
using testing::Each;

constexpr std::size_t n = 20;

TEST(CudaDevice, EachThreadHasItsOwnAndBeginsWithTheFirst) {
  in_every_order(1, [] {
    int count = 0;
    ASSERT_OK(cudaGetDeviceCount(&count));
    ASSERT_OK(cudaSetDevice(count - 1));
    std::thread([] {
      int device = -1;
      EXPECT_OK(cudaGetDevice(&device));
      EXPECT_EQ(device, 0);
    }).join();
    int device = -1;
    EXPECT_OK(cudaGetDevice(&device));
    EXPECT_EQ(device, count - 1);
    ASSERT_OK(cudaSetDevice(0));
  });
}

TEST(CudaDevice, HasPropertiesThatAgreeWithItsAttributes) {
  in_every_order(1, [] {
    cudaDeviceProp properties{};
    ASSERT_OK(cudaGetDeviceProperties(&properties, 0));
    const auto attribute = [](cudaDeviceAttr which) {
      int value = -1;
      EXPECT_OK(cudaDeviceGetAttribute(&value, which, 0));
      return value;
    };
    EXPECT_EQ(properties.major, attribute(cudaDevAttrComputeCapabilityMajor));
    EXPECT_EQ(properties.minor, attribute(cudaDevAttrComputeCapabilityMinor));
    EXPECT_EQ(properties.multiProcessorCount, attribute(cudaDevAttrMultiProcessorCount));
    EXPECT_EQ(properties.warpSize, 32);
    EXPECT_EQ(static_cast<int>(properties.sharedMemPerBlockOptin),
              attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
    EXPECT_EQ(properties.l2CacheSize, attribute(cudaDevAttrL2CacheSize));
    EXPECT_EQ(cudaGetDeviceProperties(&properties, 1000), cudaErrorInvalidDevice);
    static_cast<void>(cudaGetLastError());
  });
}

// The rest wants two devices.
class CudaTwoDevices : public testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    cuda_on_host::reset(cuda_on_host::Order::latest, 1);
    ASSERT_OK(cudaGetDeviceCount(&count));
    if (count < 2) GTEST_SKIP() << "one GPU";
  }
  void TearDown() override { static_cast<void>(cudaSetDevice(0)); }
};

TEST_F(CudaTwoDevices, KernelsAndRecordsWantAStreamOfTheirDevice) {
  const Stream stream;
  const Event event;
  const Floats a(n);
  ASSERT_OK(cudaSetDevice(1));
  const Stream other;
  EXPECT_EQ(start_fill(stream, a, 1, n), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(event, other), cudaErrorInvalidResourceHandle);
  static_cast<void>(cudaGetLastError());
  // Copies, waits and synchronisation do not.
  EXPECT_OK(cudaMemsetAsync(a, 0, n * sizeof(float), stream));
  EXPECT_OK(cudaEventRecord(event, stream));
  EXPECT_OK(cudaStreamWaitEvent(other, event, 0));
  EXPECT_OK(cudaEventSynchronize(event));
  EXPECT_OK(cudaStreamSynchronize(stream));
  ASSERT_OK(cudaSetDevice(0));
}

TEST_F(CudaTwoDevices, AnEventOrdersStreamsOfBoth) {
  in_every_order(5, [] {
    ASSERT_OK(cudaSetDevice(0));
    const Stream first;
    const Event filled;
    const Floats a(n);
    ASSERT_OK(start_fill(first, a, 3, n));
    ASSERT_OK(cudaEventRecord(filled, first));
    ASSERT_OK(cudaSetDevice(1));
    const Stream second;
    const Floats b(n);
    ASSERT_OK(cudaStreamWaitEvent(second, filled, 0));
    ASSERT_OK(cudaMemcpyPeerAsync(b, 1, a, 0, n * sizeof(float), second));
    EXPECT_THAT(fetch(b, n, second), Each(3.F));
    EXPECT_THAT(cuda_on_host::races(), testing::IsEmpty());
    EXPECT_OK(cudaStreamSynchronize(first));
  });
}

TEST_F(CudaTwoDevices, AKernelOnMemoryOfTheOtherIsMisuseWithoutPeerAccess) {
  if (!cuda_on_host::present()) GTEST_SKIP() << "a GPU would break";
  const Floats a(n);
  ASSERT_OK(cudaSetDevice(1));
  const Stream stream;
  cuda_on_host::throw_on_misuse(true);
  EXPECT_THROW(static_cast<void>(start_fill(stream, a, 1, n)), std::logic_error);
  ASSERT_OK(cudaDeviceEnablePeerAccess(0, 0));
  EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_OK(start_fill(stream, a, 1, n));
  EXPECT_THAT(fetch(a, n, stream), Each(1.F));
}

}  // namespace

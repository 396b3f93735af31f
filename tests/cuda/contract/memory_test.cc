// What memory and copies promise.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "tests/cuda/contract/kernels.h"
#include "tests/cuda/contract/rig.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t n = 100;
constexpr std::size_t bytes = n * sizeof(float);

TEST(CudaMemory, IsAlignedTo256Bytes) {
  in_every_order(1, [] {
    for (const std::size_t size : {std::size_t{1}, std::size_t{255}, std::size_t{4097}}) {
      void* memory = nullptr;
      ASSERT_OK(cudaMalloc(&memory, size));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0U);
      ASSERT_OK(cudaFree(memory));
    }
  });
}

TEST(CudaMemory, FreesNothingForNull) {
  in_every_order(1, [] {
    EXPECT_OK(cudaFree(nullptr));
    EXPECT_OK(cudaFreeHost(nullptr));
  });
}

TEST(CudaMemory, KnowsItsPlace) {
  in_every_order(1, [] {
    const Floats device(n);
    const PinnedFloats pinned(n);
    std::vector<float> pageable(n);
    cudaPointerAttributes attributes{};
    ASSERT_OK(cudaPointerGetAttributes(&attributes, device + 3));
    EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
    EXPECT_EQ(attributes.device, 0);
    ASSERT_OK(cudaPointerGetAttributes(&attributes, pinned + 3));
    EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
    ASSERT_OK(cudaPointerGetAttributes(&attributes, pageable.data()));
    EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
    ASSERT_OK(cudaHostRegister(pageable.data(), bytes, cudaHostRegisterDefault));
    ASSERT_OK(cudaPointerGetAttributes(&attributes, pageable.data()));
    EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
    EXPECT_EQ(cudaHostRegister(pageable.data(), bytes, cudaHostRegisterDefault),
              cudaErrorHostMemoryAlreadyRegistered);
    ASSERT_OK(cudaHostUnregister(pageable.data()));
    EXPECT_EQ(cudaHostUnregister(pageable.data()), cudaErrorHostMemoryNotRegistered);
    static_cast<void>(cudaGetLastError());
  });
}

TEST(CudaMemory, IsFreeAgainAfterItWasFreed) {
  in_every_order(1, [] {
    std::size_t before = 0;
    std::size_t total = 0;
    std::size_t now = 0;
    constexpr std::size_t much = std::size_t{64} << 20;
    ASSERT_OK(cudaMemGetInfo(&before, &total));
    void* memory = nullptr;
    ASSERT_OK(cudaMalloc(&memory, much));
    ASSERT_OK(cudaMemGetInfo(&now, &total));
    EXPECT_LE(now + much, before);
    ASSERT_OK(cudaFree(memory));
    ASSERT_OK(cudaMemGetInfo(&now, &total));
    EXPECT_EQ(now, before);
    EXPECT_LE(before, total);
  });
}

TEST(CudaMemory, MoreThanThereIsIsAnErrorThatLeavesTheDeviceUsable) {
  in_every_order(1, [] {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, std::size_t{1} << 50), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    const Floats after(n);
  });
}

// A pageable source is read by the call, so that it may change at once.
TEST(CudaCopy, APageableSourceIsReadByTheCall) {
  in_every_order(5, [] {
    const Stream stream;
    const Floats a(n);
    std::vector<float> host(n, 5);
    ASSERT_OK(cudaMemcpyAsync(a, host.data(), bytes, cudaMemcpyHostToDevice, stream));
    host.assign(n, 6);
    EXPECT_THAT(fetch(a, n, stream), Each(5.F));
  });
}

TEST(CudaCopy, IntoPageableMemoryItReturnsWhenItIsDone) {
  in_every_order(5, [] {
    const Stream stream;
    const Floats a(n);
    std::vector<float> host(n, 5);
    ASSERT_OK(start_fill(stream, a, 6, n));
    ASSERT_OK(cudaMemcpyAsync(host.data(), a, bytes, cudaMemcpyDeviceToHost, stream));
    EXPECT_THAT(host, Each(6.F));
  });
}

TEST(CudaCopy, WithoutAsyncItReturnsWhenItIsDone) {
  in_every_order(5, [] {
    const Floats a(n);
    const PinnedFloats host(n);
    for (std::size_t i = 0; i < n; ++i) host[i] = 1;
    ASSERT_OK(cudaMemcpy(a, host, bytes, cudaMemcpyHostToDevice));
    for (std::size_t i = 0; i < n; ++i) host[i] = 2;
    ASSERT_OK(cudaMemcpy(host, a, bytes, cudaMemcpyDefault));
    EXPECT_EQ(host[n - 1], 1);
    EXPECT_THAT(cuda_on_host::races(), IsEmpty());
  });
}

TEST(CudaCopy, OfNoBytesDoesNothing) {
  in_every_order(1, [] {
    const Stream stream;
    EXPECT_OK(cudaMemcpyAsync(nullptr, nullptr, 0, cudaMemcpyDefault, stream));
    EXPECT_OK(cudaMemsetAsync(nullptr, 0, 0, stream));
  });
}

TEST(CudaCopy, OverlappingRangesOfOneBufferAreOneOperation) {
  in_every_order(1, [] {
    const Stream stream;
    const Floats a(n);
    ASSERT_OK(start_fill(stream, a, 3, n));
    ASSERT_OK(cudaMemcpyAsync(a + n / 2, a, bytes / 2, cudaMemcpyDeviceToDevice, stream));
    EXPECT_THAT(fetch(a, n, stream), Each(3.F));
    EXPECT_THAT(cuda_on_host::races(), IsEmpty());
  });
}

// Below: what the double checks and a GPU does not.
class CudaDouble : public testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_on_host::present()) GTEST_SKIP() << "a check of the double";
    cuda_on_host::reset(cuda_on_host::Order::latest, 1);
  }
};

TEST_F(CudaDouble, FillsNewMemoryWithNan) {
  const Stream stream;
  const Floats a(n);
  for (const float value : fetch(a, n, stream)) EXPECT_TRUE(std::isnan(value));
  const PinnedFloats host(n);
  EXPECT_TRUE(std::isnan(host[0]));
  EXPECT_TRUE(std::isnan(host[n - 1]));
}

TEST_F(CudaDouble, RefusesCopiesBeyondAnAllocation) {
  const Stream stream;
  const Floats a(n), b(n);
  cuda_on_host::throw_on_misuse(true);
  EXPECT_THROW(static_cast<void>(cudaMemcpyAsync(a, b, bytes + 1, cudaMemcpyDefault, stream)),
               std::logic_error);
  EXPECT_THROW(static_cast<void>(cudaMemcpyAsync(a + 1, b, bytes, cudaMemcpyDefault, stream)),
               std::logic_error);
  EXPECT_THROW(static_cast<void>(cudaMemsetAsync(a + 1, 0, bytes, stream)), std::logic_error);
  EXPECT_THROW(static_cast<void>(start_fill(stream, a, 0, n + 1)), std::logic_error);
}

TEST_F(CudaDouble, RefusesUseOfFreedMemory) {
  const Stream stream;
  const Floats b(n);
  void* a = nullptr;
  ASSERT_OK(cudaMalloc(&a, bytes));
  ASSERT_OK(cudaFree(a));
  cuda_on_host::throw_on_misuse(true);
  EXPECT_THROW(static_cast<void>(cudaMemcpyAsync(b, a, bytes, cudaMemcpyDefault, stream)),
               std::logic_error);
  EXPECT_THROW(static_cast<void>(start_fill(stream, static_cast<float*>(a), 0, n)),
               std::logic_error);
  EXPECT_THROW(static_cast<void>(cudaFree(a)), std::logic_error);
  EXPECT_THROW(static_cast<void>(cudaFree(b + 1)), std::logic_error);
  EXPECT_THROW(static_cast<void>(cudaFreeHost(b)), std::logic_error);
}

TEST_F(CudaDouble, RefusesAKernelOnPageableMemory) {
  std::vector<float> host(n);
  cuda_on_host::throw_on_misuse(true);
  EXPECT_THROW(static_cast<void>(start_fill(nullptr, host.data(), 0, n)), std::logic_error);
}

TEST_F(CudaDouble, RefusesACopyInAnotherDirectionThanItSays) {
  const Stream stream;
  const Floats a(n), b(n);
  std::vector<float> host(n);
  EXPECT_EQ(cudaMemcpyAsync(a, b, bytes, cudaMemcpyHostToDevice, stream), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(host.data(), b, bytes, cudaMemcpyDeviceToDevice, stream),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyAsync(a, host.data(), bytes, cudaMemcpyDeviceToHost, stream),
            cudaErrorInvalidValue);
}

using CudaDoubleDeathTest = CudaDouble;

TEST_F(CudaDoubleDeathTest, EndsAHostThatFollowsADevicePointer) {
  const Floats a(n);
  EXPECT_DEATH(a[7] = 1,
               "the host writes byte 28 of the 400 bytes that cudaMalloc gave on device 0");
  EXPECT_DEATH(static_cast<void>(static_cast<volatile float*>(a)[0]), "the host reads byte 0");
}

TEST_F(CudaDoubleDeathTest, EndsAKernelThatTouchesWhatItDoesNotDeclare) {
  const Stream stream;
  const Floats a(n), b(n);
  const auto start = [&](float* declared) {
    static_cast<void>(start_undeclared(stream, declared, a));
    static_cast<void>(cudaStreamSynchronize(stream));
  };
  EXPECT_DEATH(start(b), "Undeclared> writes byte 0 of the 400 bytes .* does not declare");
  start(a);  // declared, it may
  EXPECT_EQ(fetch(a, 1, stream)[0], 1);
}

TEST_F(CudaDoubleDeathTest, EndsAKernelThatWritesWhatItDeclaresToRead) {
  const Stream stream;
  const Floats a(n);
  const auto start = [&] {
    static_cast<void>(start_write_to_input(stream, a));
    static_cast<void>(cudaStreamSynchronize(stream));
  };
  EXPECT_DEATH(start(), "WriteToInput> writes byte 0 of the 400 bytes .* does not declare");
}

#ifndef __SANITIZE_ADDRESS__  // which ends the program at the touch itself
TEST_F(CudaDoubleDeathTest, FindsWritesRightBesideAnAllocation) {
  PinnedFloats host(n);
  EXPECT_DEATH(
      {
        host[n] = 1;
        static_cast<void>(cudaFreeHost(host));
      },
      "something was written right beside");
}
#endif

TEST_F(CudaDouble, SeesTheHostTouchPinnedMemoryThatACopyUses) {
  const Stream stream;
  const Floats a(n);
  const PinnedFloats host(n);
  ASSERT_OK(cudaMemcpyAsync(a, host, bytes / 2, cudaMemcpyHostToDevice, stream));
  const volatile float seen = host[0];  // both read
  static_cast<void>(seen);
  host[n - 1] = 1;  // is not copied
  EXPECT_THAT(cuda_on_host::races(), IsEmpty());
  ASSERT_OK(cudaMemcpyAsync(a, host, bytes / 2, cudaMemcpyHostToDevice, stream));  // closed again
  host[n / 2 - 1] = 2;
  EXPECT_THAT(cuda_on_host::races(),
              ElementsAre(HasSubstr("the host writes what copy of 200 bytes reads")));
  ASSERT_OK(cudaStreamSynchronize(stream));
  host[0] = 3;
  EXPECT_EQ(cuda_on_host::races().size(), 1U);
}

// System calls do not raise faults on closed pages, they fail there: after a wait all is open.
TEST_F(CudaDouble, LetsSystemCallsUsePinnedMemoryAfterAWait) {
  const Stream stream;
  const Floats a(n);
  const PinnedFloats host(n);
  int ends[2] = {};
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_OK(start_fill(stream, a, 1, n));
  ASSERT_OK(cudaMemcpyAsync(host, a, bytes, cudaMemcpyDeviceToHost, stream));
  EXPECT_EQ(write(ends[1], host, bytes), -1);
  ASSERT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(write(ends[1], host, bytes), static_cast<ssize_t>(bytes));
  close(ends[0]);
  close(ends[1]);
}

TEST_F(CudaDouble, TakesTheWordOfAProgramForWhatItDoesToRegisteredMemory) {
  const Stream stream;
  const Floats a(n);
  std::vector<float> host(n);
  ASSERT_OK(cudaHostRegister(host.data(), bytes, cudaHostRegisterDefault));
  ASSERT_OK(cudaMemcpyAsync(a, host.data(), bytes, cudaMemcpyHostToDevice, stream));
  cuda_on_host::host_reads(host.data(), bytes);
  EXPECT_THAT(cuda_on_host::races(), IsEmpty());
  cuda_on_host::host_writes(host.data(), 4);
  EXPECT_EQ(cuda_on_host::races().size(), 1U);
  ASSERT_OK(cudaStreamSynchronize(stream));
  cuda_on_host::host_writes(host.data(), 4);
  EXPECT_EQ(cuda_on_host::races().size(), 1U);
  ASSERT_OK(cudaHostUnregister(host.data()));
}

TEST_F(CudaDouble, LimitsTheMemoryOfEachDevice) {
  cuda_on_host::limit_memory(1000);
  void* first = nullptr;
  void* second = nullptr;
  ASSERT_OK(cudaMalloc(&first, 600));
  EXPECT_EQ(cudaMalloc(&second, 401), cudaErrorMemoryAllocation);
  ASSERT_OK(cudaMalloc(&second, 400));
  void* third = nullptr;
  ASSERT_OK(cudaSetDevice(1));
  ASSERT_OK(cudaMalloc(&third, 1000));
  for (void* const memory : {first, second, third}) ASSERT_OK(cudaFree(memory));
}

TEST_F(CudaDouble, ListsWhatWasNotGivenBack) {
  EXPECT_THAT(cuda_on_host::leaks(), IsEmpty());
  void* memory = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_OK(cudaMalloc(&memory, 12));
  ASSERT_OK(cudaStreamCreate(&stream));
  ASSERT_OK(cudaEventCreate(&event));
  ASSERT_OK(cudaGraphCreate(&graph, 0));
  ASSERT_OK(cudaGraphInstantiate(&executable, graph, 0));
  EXPECT_THAT(cuda_on_host::leaks(),
              ElementsAre("byte 0 of the 12 bytes that cudaMalloc gave on device 0",
                          "a graph of 0 nodes", "an executable graph of 0 nodes",
                          "an event of device 0", "stream 1 of device 0"));
  ASSERT_OK(cudaFree(memory));
  ASSERT_OK(cudaStreamDestroy(stream));
  ASSERT_OK(cudaEventDestroy(event));
  ASSERT_OK(cudaGraphExecDestroy(executable));
  ASSERT_OK(cudaGraphDestroy(graph));
  EXPECT_THAT(cuda_on_host::leaks(), IsEmpty());
}

}  // namespace

// What streams and events promise: order within a stream, and between streams by events alone.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/cuda/contract/kernels.h"
#include "tests/cuda/contract/rig.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names
using testing::Each;
using testing::IsEmpty;

constexpr std::size_t n = 300;

TEST(CudaStream, RunsInOrder) {
  in_every_order(5, [] {
    const Stream stream;
    const Floats a(n), b(n);
    ASSERT_OK(start_fill(stream, a, 1, n));
    ASSERT_OK(cudaMemcpyAsync(b, a, n * sizeof(float), cudaMemcpyDeviceToDevice, stream));
    ASSERT_OK(start_combine(stream, b, a, 1, 1, 0, n));
    ASSERT_OK(cudaMemsetAsync(a, 0, n * sizeof(float), stream));
    ASSERT_OK(start_combine(stream, b, a, 1, 1, 3, n));
    EXPECT_THAT(fetch(b, n, stream), Each(5.F));
    EXPECT_THAT(cuda_on_host::races(), IsEmpty());
  });
}

TEST(CudaStream, AWaitForAnEventThatWasNeverRecordedHasNoEffect) {
  in_every_order(1, [] {
    const Stream stream;
    const Event event;
    EXPECT_OK(cudaStreamWaitEvent(stream, event, 0));
    EXPECT_OK(cudaStreamSynchronize(stream));
    EXPECT_OK(cudaEventQuery(event));
    EXPECT_OK(cudaEventSynchronize(event));
  });
}

// An event does not follow its stream: a wait is for what was recorded before it.
TEST(CudaEvent, StandsForWhatWasRecordedAtTheWait) {
  in_every_order(5, [] {
    const Stream first, second;
    const Event event;
    const Floats a(n), b(n);
    ASSERT_OK(start_fill(first, a, 1, n));
    ASSERT_OK(cudaEventRecord(event, first));
    ASSERT_OK(cudaStreamWaitEvent(second, event, 0));
    ASSERT_OK(start_fill(first, b, 2, n));
    ASSERT_OK(cudaEventRecord(event, first));  // the wait above is for the record before
    ASSERT_OK(start_combine(second, a, a, 1, 1, 0, n));
    EXPECT_THAT(fetch(a, n, second), Each(2.F));
    ASSERT_OK(cudaStreamSynchronize(first));
    EXPECT_THAT(cuda_on_host::races(), IsEmpty());
  });
}

TEST(CudaEvent, MayBeDestroyedBeforeItHappens) {
  in_every_order(3, [] {
    const Stream first, second;
    const Floats a(n);
    ASSERT_OK(start_fill(first, a, 1, n));
    {
      const Event event;
      ASSERT_OK(cudaEventRecord(event, first));
      ASSERT_OK(cudaStreamWaitEvent(second, event, 0));
    }
    ASSERT_OK(start_combine(second, a, a, 1, 1, 0, n));
    EXPECT_THAT(fetch(a, n, second), Each(2.F));
    EXPECT_THAT(cuda_on_host::races(), IsEmpty());
  });
}

TEST(CudaStream, MayBeDestroyedBeforeItsWorkIsDone) {
  in_every_order(3, [] {
    const Floats a(n);
    const Event event;
    {
      const Stream stream;
      ASSERT_OK(start_fill(stream, a, 1, n));
      ASSERT_OK(cudaEventRecord(event, stream));
    }
    const Stream other;
    ASSERT_OK(cudaStreamWaitEvent(other, event, 0));
    EXPECT_THAT(fetch(a, n, other), Each(1.F));
    EXPECT_THAT(cuda_on_host::races(), IsEmpty());
  });
}

TEST(CudaEvent, ElapsedTimeIsNeverZeroBetweenTwo) {
  in_every_order(3, [] {
    const Stream stream;
    const Event start(cudaEventDefault), end(cudaEventDefault);
    const Floats a(n);
    ASSERT_OK(cudaEventRecord(start, stream));
    ASSERT_OK(start_fill(stream, a, 1, n));
    ASSERT_OK(cudaEventRecord(end, stream));
    ASSERT_OK(cudaEventSynchronize(end));
    float ms = 0;
    ASSERT_OK(cudaEventElapsedTime(&ms, start, end));
    EXPECT_GT(ms, 0);
  });
}

TEST(CudaEvent, HasNoTimeUnlessItWasMadeForThatAndRecorded) {
  in_every_order(1, [] {
    const Stream stream;
    const Event timed(cudaEventDefault), untimed, never(cudaEventDefault);
    float ms = 0;
    ASSERT_OK(cudaEventRecord(timed, stream));
    ASSERT_OK(cudaEventRecord(untimed, stream));
    ASSERT_OK(cudaStreamSynchronize(stream));
    EXPECT_EQ(cudaEventElapsedTime(&ms, timed, untimed), cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaEventElapsedTime(&ms, timed, never), cudaErrorInvalidResourceHandle);
    EXPECT_OK(cudaEventElapsedTime(&ms, timed, timed));
    static_cast<void>(cudaGetLastError());
  });
}

// The host asks until it is done; in any order that happens.
TEST(CudaStream, QueriesSayNotReadyUntilItIs) {
  in_every_order(5, [] {
    const Stream stream;
    const Event event;
    const Floats a(n);
    const PinnedFloats host(n);
    ASSERT_OK(start_fill(stream, a, 1, n));
    ASSERT_OK(cudaMemcpyAsync(host, a, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
    ASSERT_OK(cudaEventRecord(event, stream));
    cudaError_t status = cudaEventQuery(event);
    for (int i = 0; status == cudaErrorNotReady && i < 100000000; ++i) {
      EXPECT_EQ(cudaGetLastError(), cudaSuccess);
      status = cudaEventQuery(event);
    }
    ASSERT_EQ(status, cudaSuccess);
    EXPECT_EQ(host[n - 1], 1);
    ASSERT_OK(cudaStreamSynchronize(stream));
    EXPECT_OK(cudaStreamQuery(stream));
    EXPECT_THAT(cuda_on_host::races(), IsEmpty());
  });
}

TEST(CudaStream, LegacyAndBlockingStreamsWaitForEachOther) {
  in_every_order(10, [] {
    const Stream blocking(cudaStreamDefault), other(cudaStreamDefault);
    const Floats a(n);
    ASSERT_OK(start_fill(blocking, a, 1, n));
    ASSERT_OK(start_combine(nullptr, a, a, 1, 1, 0, n));
    ASSERT_OK(start_combine(other, a, a, 1, 1, 0, n));
    ASSERT_OK(start_combine(cudaStreamLegacy, a, a, 1, 1, 0, n));
    EXPECT_THAT(fetch(a, n, blocking), Each(8.F));
    EXPECT_THAT(cuda_on_host::races(), IsEmpty());
  });
}

TEST(CudaStream, TheDeviceIsWaitedForAsAWhole) {
  in_every_order(5, [] {
    const Stream first, second;
    const PinnedFloats a(n), b(n);
    ASSERT_OK(start_fill(first, a, 1, n));
    ASSERT_OK(start_fill(second, b, 2, n));
    ASSERT_OK(cudaDeviceSynchronize());
    EXPECT_EQ(a[n - 1], 1);
    EXPECT_EQ(b[n - 1], 2);
    EXPECT_THAT(cuda_on_host::races(), IsEmpty());
  });
}

TEST(CudaStream, HasThePriorityThatItWasGiven) {
  in_every_order(1, [] {
    int least = 0;
    int greatest = 0;
    ASSERT_OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT_LT(greatest, least);  // smaller numbers come first
    cudaStream_t stream = nullptr;
    ASSERT_OK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest - 10));
    int priority = 0;
    EXPECT_OK(cudaStreamGetPriority(stream, &priority));
    EXPECT_EQ(priority, greatest);
    unsigned flags = 0;
    EXPECT_OK(cudaStreamGetFlags(stream, &flags));
    EXPECT_EQ(flags, unsigned{cudaStreamNonBlocking});
    EXPECT_OK(cudaStreamDestroy(stream));
  });
}

TEST(CudaStream, RunsFunctionsOfTheHostInOrderAndLetsThemCallNothing) {
  in_every_order(3, [] {
    struct Seen {
      float* host;
      float value;
      cudaError_t status;
    };
    const Stream stream;
    const PinnedFloats host(n);
    Seen seen = {host, 0, cudaSuccess};
    ASSERT_OK(start_fill(stream, host, 7, n));
    ASSERT_OK(cudaLaunchHostFunc(
        stream,
        [](void* data) {
          auto* const s = static_cast<Seen*>(data);
          s->value = s->host[0];
          s->status = cudaStreamQuery(nullptr);
        },
        &seen));
    ASSERT_OK(cudaStreamSynchronize(stream));
    EXPECT_EQ(seen.value, 7);
    EXPECT_EQ(seen.status, cudaErrorNotPermitted);
  });
}

TEST(CudaStream, UseAfterDestructionIsMisuse) {
  if (!cuda_on_host::present()) GTEST_SKIP() << "a GPU's runtime may crash";
  cuda_on_host::reset(cuda_on_host::Order::eager, 1);
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_OK(cudaStreamCreate(&stream));
  ASSERT_OK(cudaEventCreate(&event));
  ASSERT_OK(cudaStreamDestroy(stream));
  ASSERT_OK(cudaEventDestroy(event));
  cuda_on_host::throw_on_misuse(true);
  EXPECT_THROW(static_cast<void>(cudaStreamSynchronize(stream)), std::logic_error);
  EXPECT_THROW(static_cast<void>(cudaStreamDestroy(stream)), std::logic_error);
  EXPECT_THROW(static_cast<void>(cudaEventRecord(event, nullptr)), std::logic_error);
  EXPECT_THROW(static_cast<void>(cudaEventDestroy(event)), std::logic_error);
  cuda_on_host::throw_on_misuse(false);
  EXPECT_DEATH(static_cast<void>(cudaStreamQuery(stream)), "use of a destroyed stream");
}

TEST(CudaStream, HandlesOfTheTestBeforeAreMisuse) {
  if (!cuda_on_host::present()) GTEST_SKIP() << "reset() is the double's";
  cuda_on_host::reset(cuda_on_host::Order::eager, 1);
  cudaStream_t stream = nullptr;
  ASSERT_OK(cudaStreamCreate(&stream));
  cuda_on_host::reset(cuda_on_host::Order::eager, 1);
  cuda_on_host::throw_on_misuse(true);
  EXPECT_THROW(static_cast<void>(cudaStreamSynchronize(stream)), std::logic_error);
}

}  // namespace

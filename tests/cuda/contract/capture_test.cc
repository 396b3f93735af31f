// Captures and graphs: what a capture forbids, and what a graph does when it is launched.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/cuda/contract/kernels.h"
#include "tests/cuda/contract/rig.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names
using testing::Each;
using testing::IsEmpty;

constexpr std::size_t n = 50;
constexpr std::size_t bytes = n * sizeof(float);

// Ends a capture that some call has broken.
void expect_broken(cudaStream_t stream, cudaError_t end = cudaErrorStreamCaptureInvalidated) {
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), end);
  EXPECT_EQ(graph, nullptr);
  static_cast<void>(cudaGetLastError());
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  EXPECT_OK(cudaStreamIsCapturing(stream, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
}

void begin(cudaStream_t stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  ASSERT_OK(cudaStreamBeginCapture(stream, mode));
}

TEST(CudaGraph, ReplaysForksAndJoins) {
  in_every_order(20, [] {
    const Stream main, branch;
    const Event forked, joined;
    const Floats a(n), b(n);
    ASSERT_OK(start_fill(main, a, 1, n));
    ASSERT_OK(start_fill(main, b, 0, n));
    ASSERT_OK(cudaStreamSynchronize(main));
    begin(main);
    ASSERT_OK(start_combine(main, b, a, 1, 1, 0, n));  // b += a
    ASSERT_OK(cudaEventRecord(forked, main));
    ASSERT_OK(cudaStreamWaitEvent(branch, forked, 0));
    ASSERT_OK(start_combine(branch, a, b, 1, 1, 0, n));  // a += b
    ASSERT_OK(cudaEventRecord(joined, branch));
    ASSERT_OK(cudaStreamWaitEvent(main, joined, 0));
    ASSERT_OK(start_combine(main, b, a, 1, 1, 0, n));  // b += a
    cudaGraph_t graph = nullptr;
    ASSERT_OK(cudaStreamEndCapture(main, &graph));
    std::size_t nodes = 0;
    ASSERT_OK(cudaGraphGetNodes(graph, nullptr, &nodes));
    EXPECT_EQ(nodes, 3U);
    cudaGraphExec_t executable = nullptr;
    ASSERT_OK(cudaGraphInstantiate(&executable, graph, 0));
    ASSERT_OK(cudaGraphDestroy(graph));
    EXPECT_THAT(fetch(b, n, main), Each(0.F));  // nothing has run yet
    float x = 1;
    float y = 0;
    for (int launch = 0; launch < 3; ++launch) {
      ASSERT_OK(cudaGraphLaunch(executable, launch % 2 == 0 ? main : branch));
      y += x;
      x += y;
      y += x;
    }
    ASSERT_OK(cudaStreamSynchronize(branch));
    EXPECT_THAT(fetch(b, n, main), Each(y));
    EXPECT_THAT(fetch(a, n, main), Each(x));
    EXPECT_THAT(cuda_on_host::races(), IsEmpty());
    ASSERT_OK(cudaGraphExecDestroy(executable));
    EXPECT_THAT(cuda_on_host::leaks(), testing::SizeIs(cuda_on_host::present() ? 6 : 0));
  });
}

// Two branches, both of which the last node waits for.
TEST(CudaGraph, JoinsBranches) {
  in_every_order(20, [] {
    const Stream main, branch;
    const Event forked, joined;
    const Floats x(n), y(n), z(n);
    begin(main);
    ASSERT_OK(start_fill(main, x, 1, n));
    ASSERT_OK(cudaEventRecord(forked, main));
    ASSERT_OK(cudaStreamWaitEvent(branch, forked, 0));
    ASSERT_OK(start_fill(main, z, 2, n));
    ASSERT_OK(cudaMemcpyAsync(y, x, bytes, cudaMemcpyDeviceToDevice, branch));
    ASSERT_OK(cudaEventRecord(joined, branch));
    ASSERT_OK(cudaStreamWaitEvent(main, joined, 0));
    ASSERT_OK(start_combine(main, y, z, 1, 1, 0, n));
    cudaGraph_t graph = nullptr;
    ASSERT_OK(cudaStreamEndCapture(main, &graph));
    cudaGraphExec_t executable = nullptr;
    ASSERT_OK(cudaGraphInstantiate(&executable, graph, 0));
    ASSERT_OK(cudaGraphLaunch(executable, main));
    EXPECT_THAT(fetch(y, n, main), Each(3.F));
    EXPECT_THAT(cuda_on_host::races(), IsEmpty());
    ASSERT_OK(cudaGraphExecDestroy(executable));
    ASSERT_OK(cudaGraphDestroy(graph));
  });
}

// A graph runs once at a time, whichever streams it is launched into.
TEST(CudaGraph, WaitsForItsLaunchBefore) {
  in_every_order(20, [] {
    const Stream main, branch, other;
    const Event forked, joined;
    const Floats x(n), y(n), z(n);
    ASSERT_OK(start_fill(main, x, 0, n));
    ASSERT_OK(start_fill(main, y, 0, n));
    ASSERT_OK(cudaStreamSynchronize(main));
    begin(main);
    ASSERT_OK(start_combine(main, x, x, 1, 0, 1, n));  // x += 1
    ASSERT_OK(cudaEventRecord(forked, main));
    ASSERT_OK(cudaStreamWaitEvent(branch, forked, 0));
    ASSERT_OK(start_fill(main, z, 2, n));
    ASSERT_OK(start_combine(branch, y, x, 1, 1, 0, n));  // y += x, the last that reads x
    ASSERT_OK(cudaEventRecord(joined, branch));
    ASSERT_OK(cudaStreamWaitEvent(main, joined, 0));
    cudaGraph_t graph = nullptr;
    ASSERT_OK(cudaStreamEndCapture(main, &graph));
    cudaGraphExec_t executable = nullptr;
    ASSERT_OK(cudaGraphInstantiate(&executable, graph, 0));
    ASSERT_OK(cudaGraphLaunch(executable, main));
    ASSERT_OK(cudaGraphLaunch(executable, other));
    EXPECT_THAT(fetch(y, n, other), Each(3.F));
    EXPECT_THAT(cuda_on_host::races(), IsEmpty());
    ASSERT_OK(cudaStreamSynchronize(main));
    ASSERT_OK(cudaGraphExecDestroy(executable));
    ASSERT_OK(cudaGraphDestroy(graph));
  });
}

// A graph has the pointers of its capture, and reads what is there when it runs.
TEST(CudaGraph, CopiesPinnedMemoryWhenItRuns) {
  in_every_order(5, [] {
    const Stream stream;
    const Floats a(n);
    const PinnedFloats in(n), out(n);
    begin(stream);
    ASSERT_OK(cudaMemcpyAsync(a, in, bytes, cudaMemcpyHostToDevice, stream));
    ASSERT_OK(start_combine(stream, a, a, 1, 0, 1, n));
    ASSERT_OK(cudaMemcpyAsync(out, a, bytes, cudaMemcpyDeviceToHost, stream));
    cudaGraph_t graph = nullptr;
    ASSERT_OK(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t executable = nullptr;
    ASSERT_OK(cudaGraphInstantiate(&executable, graph, 0));
    for (int launch = 0; launch < 3; ++launch) {
      for (std::size_t i = 0; i < n; ++i) in[i] = static_cast<float>(launch);
      ASSERT_OK(cudaGraphLaunch(executable, stream));
      ASSERT_OK(cudaStreamSynchronize(stream));
      EXPECT_EQ(out[n - 1], static_cast<float>(launch + 1));
    }
    EXPECT_THAT(cuda_on_host::races(), IsEmpty());
    ASSERT_OK(cudaGraphExecDestroy(executable));
    ASSERT_OK(cudaGraphDestroy(graph));
  });
}

TEST(CudaCapture, ForbidsWhatWouldWaitOrAllocate) {
  in_every_order(1, [] {
    const Stream stream, other;
    const Event event;
    ASSERT_OK(cudaEventRecord(event, other));
    ASSERT_OK(cudaStreamSynchronize(other));
    void* memory = nullptr;
    begin(stream);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    expect_broken(stream);
    begin(stream);
    EXPECT_EQ(cudaStreamQuery(stream), cudaErrorStreamCaptureUnsupported);
    expect_broken(stream);
    begin(stream);
    EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorStreamCaptureUnsupported);
    expect_broken(stream);
    begin(stream);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported);
    expect_broken(stream);
    begin(stream);
    EXPECT_EQ(cudaEventQuery(event), cudaErrorStreamCaptureUnsupported);
    expect_broken(stream);
  });
}

TEST(CudaCapture, OfOneThreadForbidsNothingToOthersAndARelaxedOneNothingUnsafe) {
  in_every_order(1, [] {
    const Stream stream;
    void* memory = nullptr;
    begin(stream, cudaStreamCaptureModeThreadLocal);
    std::thread([&memory] {
      EXPECT_OK(cudaMalloc(&memory, 4));
      EXPECT_OK(cudaFree(memory));
    }).join();
    cudaGraph_t graph = nullptr;
    ASSERT_OK(cudaStreamEndCapture(stream, &graph));
    ASSERT_OK(cudaGraphDestroy(graph));
    begin(stream, cudaStreamCaptureModeThreadLocal);
    EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorStreamCaptureUnsupported);
    expect_broken(stream);
    begin(stream, cudaStreamCaptureModeGlobal);
    std::thread([&memory] {
      EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorStreamCaptureUnsupported);
    }).join();
    expect_broken(stream);
    begin(stream, cudaStreamCaptureModeRelaxed);
    EXPECT_OK(cudaMalloc(&memory, 4));
    ASSERT_OK(cudaStreamEndCapture(stream, &graph));
    ASSERT_OK(cudaGraphDestroy(graph));
    EXPECT_OK(cudaFree(memory));
  });
}

TEST(CudaCapture, ThreadsMayDeclareThatTheyKnowWhatTheyDo) {
  in_every_order(1, [] {
    const Stream stream;
    begin(stream, cudaStreamCaptureModeGlobal);
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    ASSERT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
    EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
    void* memory = nullptr;
    EXPECT_OK(cudaMalloc(&memory, 4));
    ASSERT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
    cudaGraph_t graph = nullptr;
    ASSERT_OK(cudaStreamEndCapture(stream, &graph));
    ASSERT_OK(cudaGraphDestroy(graph));
    EXPECT_OK(cudaFree(memory));
  });
}

TEST(CudaCapture, ForbidsTheLegacyStreamBesideABlockingOne) {
  in_every_order(1, [] {
    const Stream stream(cudaStreamDefault);
    const Floats a(n);
    begin(stream, cudaStreamCaptureModeRelaxed);
    EXPECT_EQ(cudaMemsetAsync(a, 0, bytes, nullptr), cudaErrorStreamCaptureImplicit);
    expect_broken(stream);
    EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
              cudaErrorStreamCaptureUnsupported);
    static_cast<void>(cudaGetLastError());
  });
}

TEST(CudaCapture, WithoutAJoinIsAnError) {
  in_every_order(1, [] {
    const Stream stream, branch;
    const Event forked;
    const Floats a(n);
    begin(stream);
    ASSERT_OK(cudaEventRecord(forked, stream));
    ASSERT_OK(cudaStreamWaitEvent(branch, forked, 0));
    ASSERT_OK(start_fill(branch, a, 1, n));
    expect_broken(stream, cudaErrorStreamCaptureUnjoined);
    ASSERT_OK(start_fill(branch, a, 2, n));  // is no longer captured
    EXPECT_THAT(fetch(a, n, branch), Each(2.F));
  });
}

TEST(CudaCapture, EndsWhereItBegan) {
  in_every_order(1, [] {
    const Stream stream, branch;
    const Event forked;
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorIllegalState);
    begin(stream);
    EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
    ASSERT_OK(cudaEventRecord(forked, stream));
    ASSERT_OK(cudaStreamWaitEvent(branch, forked, 0));
    EXPECT_EQ(cudaStreamEndCapture(branch, &graph), cudaErrorStreamCaptureUnmatched);
    static_cast<void>(cudaStreamEndCapture(stream, &graph));  // broken, or not
    if (graph != nullptr) EXPECT_OK(cudaGraphDestroy(graph));
    static_cast<void>(cudaGetLastError());
    begin(stream, cudaStreamCaptureModeThreadLocal);
    std::thread([&stream, &graph] {
      EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureWrongThread);
    }).join();
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    EXPECT_OK(cudaStreamIsCapturing(stream, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorIllegalState);
    if (graph != nullptr) EXPECT_OK(cudaGraphDestroy(graph));
    static_cast<void>(cudaGetLastError());
  });
}

TEST(CudaCapture, DoesNotCrossItsBorders) {
  in_every_order(1, [] {
    const Stream stream, second, outside;
    const Event before, in_first, in_second;
    ASSERT_OK(cudaEventRecord(before, outside));
    begin(stream);
    EXPECT_EQ(cudaStreamWaitEvent(stream, before, 0), cudaErrorStreamCaptureIsolation);
    expect_broken(stream);
    begin(stream);
    ASSERT_OK(cudaEventRecord(in_first, stream));
    EXPECT_EQ(cudaEventQuery(in_first), cudaErrorCapturedEvent);
    expect_broken(stream);
    begin(stream);
    ASSERT_OK(cudaEventRecord(in_first, stream));
    EXPECT_EQ(cudaEventSynchronize(in_first), cudaErrorCapturedEvent);
    expect_broken(stream);
    begin(stream);
    begin(second);
    ASSERT_OK(cudaEventRecord(in_first, stream));
    EXPECT_EQ(cudaStreamWaitEvent(second, in_first, 0), cudaErrorStreamCaptureMerge);
    expect_broken(stream);
    expect_broken(second);
  });
}

TEST(CudaGraph, OfNothingRuns) {
  in_every_order(1, [] {
    const Stream stream;
    cudaGraph_t graph = nullptr;
    begin(stream);
    ASSERT_OK(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t executable = nullptr;
    ASSERT_OK(cudaGraphInstantiate(&executable, graph, 0));
    ASSERT_OK(cudaGraphLaunch(executable, stream));
    ASSERT_OK(cudaStreamSynchronize(stream));
    ASSERT_OK(cudaGraphExecDestroy(executable));
    ASSERT_OK(cudaGraphDestroy(graph));
  });
}

TEST(CudaGraph, UseAfterDestructionIsMisuse) {
  if (!cuda_on_host::present()) GTEST_SKIP() << "a GPU's runtime may crash";
  cuda_on_host::reset(cuda_on_host::Order::eager, 1);
  const Stream stream;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_OK(cudaGraphCreate(&graph, 0));
  ASSERT_OK(cudaGraphInstantiate(&executable, graph, 0));
  ASSERT_OK(cudaGraphDestroy(graph));
  ASSERT_OK(cudaGraphExecDestroy(executable));
  cuda_on_host::throw_on_misuse(true);
  EXPECT_THROW(static_cast<void>(cudaGraphInstantiate(&executable, graph, 0)), std::logic_error);
  EXPECT_THROW(static_cast<void>(cudaGraphLaunch(executable, stream)), std::logic_error);
  EXPECT_THROW(static_cast<void>(cudaGraphDestroy(graph)), std::logic_error);
  cuda_on_host::throw_on_misuse(false);
}

// A wait inside of a capture for a stream that is idle there adds an edge, and no node.
TEST(CudaGraph, CountsNoNodesForWaits) {
  in_every_order(1, [] {
    const Stream stream, branch;
    const Event forked, joined;
    begin(stream);
    ASSERT_OK(cudaEventRecord(forked, stream));
    ASSERT_OK(cudaStreamWaitEvent(branch, forked, 0));
    ASSERT_OK(cudaEventRecord(joined, branch));
    ASSERT_OK(cudaStreamWaitEvent(stream, joined, 0));
    cudaGraph_t graph = nullptr;
    ASSERT_OK(cudaStreamEndCapture(stream, &graph));
    std::size_t nodes = 7;
    ASSERT_OK(cudaGraphGetNodes(graph, nullptr, &nodes));
    EXPECT_EQ(nodes, 0U);
    ASSERT_OK(cudaGraphDestroy(graph));
  });
}

}  // namespace

// What times of events promise, and what the double's virtual clock makes of a device that a test
// describes.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/cuda/contract/kernels.h"
#include "tests/cuda/contract/rig.h"

namespace {

using namespace cuda_contract;  // NOLINT: the tests' own names

constexpr std::size_t n = 300;
constexpr float resolution_ms = 1e-3F;  // "around half a microsecond", and the rounding of a float

float elapsed_ms(cudaEvent_t from, cudaEvent_t to) {
  float ms = -1;
  EXPECT_OK(cudaEventElapsedTime(&ms, from, to));
  return ms;
}

// Every contract of times holds with and without the virtual clock; on a GPU the device's own.
template <class Body>
void on_every_clock(int seeds, Body body) {
  for (const char* const clock :
       {"", "event=0.5e-6; *=5e-6+1e9", "jitter=0.5; event=1e-6; *=1e-6"}) {
    SCOPED_TRACE(std::string("clock ") + clock);
    in_every_order(seeds, [&] {
      cuda_on_host::set_clock(clock);
      body();
    });
    if (!cuda_on_host::present()) return;
  }
}

TEST(CudaTime, RisesAlongAStream) {
  on_every_clock(5, [] {
    const Stream stream;
    const Floats a(n);
    constexpr int count = 6;
    std::vector<std::unique_ptr<Event>> events;
    for (int i = 0; i < count; ++i) {
      events.push_back(std::make_unique<Event>(cudaEventDefault));
      ASSERT_OK(cudaEventRecord(*events.back(), stream));
      if (i % 2 == 0) ASSERT_OK(start_fill(stream, a, 1, n));
    }
    ASSERT_OK(cudaEventSynchronize(*events.back()));
    for (int i = 0; i + 1 < count; ++i) {
      const float step = elapsed_ms(*events[i], *events[i + 1]);
      EXPECT_GE(step, 0) << i;
      if (i % 2 == 0) EXPECT_GT(step, 0) << "a kernel takes time";
    }
    EXPECT_EQ(elapsed_ms(*events[2], *events[2]), 0);
  });
}

TEST(CudaTime, AddsUpAndHasASign) {
  on_every_clock(3, [] {
    const Stream stream;
    const Floats a(n);
    const Event first(cudaEventDefault), middle(cudaEventDefault), last(cudaEventDefault);
    ASSERT_OK(cudaEventRecord(first, stream));
    ASSERT_OK(start_fill(stream, a, 1, n));
    ASSERT_OK(cudaEventRecord(middle, stream));
    ASSERT_OK(start_fill(stream, a, 2, n));
    ASSERT_OK(cudaEventRecord(last, stream));
    ASSERT_OK(cudaStreamSynchronize(stream));
    EXPECT_NEAR(elapsed_ms(first, last), elapsed_ms(first, middle) + elapsed_ms(middle, last),
                2 * resolution_ms);
    EXPECT_NEAR(elapsed_ms(last, first), -elapsed_ms(first, last), resolution_ms);
  });
}

TEST(CudaTime, OfStreamsThatWaitFollowsTheWait) {
  on_every_clock(5, [] {
    const Stream first, second;
    const Floats a(n);
    const Event done(cudaEventDefault), begun(cudaEventDefault);
    ASSERT_OK(start_fill(first, a, 1, n));
    ASSERT_OK(cudaEventRecord(done, first));
    ASSERT_OK(cudaStreamWaitEvent(second, done, cudaEventWaitDefault));
    ASSERT_OK(cudaEventRecord(begun, second));
    ASSERT_OK(cudaStreamSynchronize(second));
    EXPECT_GE(elapsed_ms(done, begun), 0);
  });
}

TEST(CudaTime, OfMoreBytesIsLonger) {
  in_every_order(1, [] {
    cuda_on_host::set_clock("*=5e-6+10e9");
    const Stream stream;
    constexpr std::size_t many = std::size_t{1} << 22;
    const Floats a(many), b(many);
    ASSERT_OK(cudaMemsetAsync(a, 0, many * sizeof(float), stream));
    const Event begin(cudaEventDefault), small(cudaEventDefault), large(cudaEventDefault);
    ASSERT_OK(cudaMemcpyAsync(b, a, n, cudaMemcpyDeviceToDevice, stream));
    ASSERT_OK(cudaEventRecord(begin, stream));
    ASSERT_OK(cudaMemcpyAsync(b, a, n, cudaMemcpyDeviceToDevice, stream));
    ASSERT_OK(cudaEventRecord(small, stream));
    for (int i = 0; i < 20; ++i)
      ASSERT_OK(cudaMemcpyAsync(b, a, many * sizeof(float), cudaMemcpyDeviceToDevice, stream));
    ASSERT_OK(cudaEventRecord(large, stream));
    ASSERT_OK(cudaStreamSynchronize(stream));
    EXPECT_GT(elapsed_ms(small, large), elapsed_ms(begin, small));
  });
}

TEST(CudaTime, IsThereOnceBothEventsAreDone) {
  in_every_order(3, [] {
    cuda_on_host::set_clock("*=1e-6");
    const Stream stream;
    const Event first(cudaEventDefault), never(cudaEventDefault);
    float ms = 0;
    EXPECT_EQ(cudaEventElapsedTime(&ms, first, never), cudaErrorInvalidResourceHandle);
    ASSERT_OK(cudaEventRecord(first, stream));
    const cudaError_t status = cudaEventElapsedTime(&ms, first, first);
    EXPECT_TRUE(status == cudaSuccess || status == cudaErrorNotReady);
    ASSERT_OK(cudaEventSynchronize(first));
    EXPECT_EQ(cudaEventElapsedTime(&ms, first, never), cudaErrorInvalidResourceHandle);
    EXPECT_OK(cudaEventElapsedTime(&ms, first, first));
    static_cast<void>(cudaGetLastError());
  });
}

// What follows is the double's own: a GPU has no clock that a test describes.
class VirtualClock : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cuda_on_host::present()) GTEST_SKIP() << "a GPU has a clock of its own";
    cuda_on_host::reset(cuda_on_host::Order::eager, 1);
  }
};

TEST_F(VirtualClock, TakesWhatTheFirstRuleSays) {
  cuda_on_host::set_clock(
      "copy host to device=10e-6+2e9; copy device to host=20e-6+1e9; copy=1e-6+4e9; *=3e-6");
  const Stream stream;
  constexpr std::size_t bytes = 1 << 20;
  const Floats a(bytes / 4), b(bytes / 4);
  const PinnedFloats host(bytes / 4);
  const Event begin(cudaEventDefault), in(cudaEventDefault), out(cudaEventDefault),
      within(cudaEventDefault), kernel(cudaEventDefault);
  ASSERT_OK(cudaEventRecord(begin, stream));
  ASSERT_OK(cudaMemcpyAsync(a, host, bytes, cudaMemcpyHostToDevice, stream));
  ASSERT_OK(cudaEventRecord(in, stream));
  ASSERT_OK(cudaMemcpyAsync(host, a, bytes, cudaMemcpyDeviceToHost, stream));
  ASSERT_OK(cudaEventRecord(out, stream));
  ASSERT_OK(cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice, stream));
  ASSERT_OK(cudaEventRecord(within, stream));
  ASSERT_OK(start_fill(stream, a, 1, n));
  ASSERT_OK(cudaEventRecord(kernel, stream));
  ASSERT_OK(cudaStreamSynchronize(stream));
  EXPECT_NEAR(elapsed_ms(begin, in), 0.010 + 1e3 * bytes / 2e9, 1e-6);
  EXPECT_NEAR(elapsed_ms(in, out), 0.020 + 1e3 * bytes / 1e9, 1e-6);
  EXPECT_NEAR(elapsed_ms(out, within), 0.001 + 1e3 * bytes / 4e9, 1e-6);
  EXPECT_NEAR(elapsed_ms(within, kernel), 0.003, 1e-6);
}

TEST_F(VirtualClock, LetsStreamsRunBesideEachOtherAndEnginesNot) {
  cuda_on_host::set_clock("copy host to device=100e-6; *=100e-6");
  const Stream first, second, third, fourth;
  const Floats a(n), b(n), c(n), d(n), e(n);
  const PinnedFloats host(n);
  const Event begin(cudaEventDefault), kernels(cudaEventDefault), before(cudaEventDefault),
      behind(cudaEventDefault);
  ASSERT_OK(cudaEventRecord(begin, first));
  ASSERT_OK(start_fill(first, a, 1, n));
  ASSERT_OK(start_fill(second, b, 1, n));
  ASSERT_OK(cudaEventRecord(kernels, second));
  ASSERT_OK(cudaMemcpyAsync(c, host, n, cudaMemcpyHostToDevice, second));
  ASSERT_OK(cudaMemcpyAsync(d, host, n, cudaMemcpyHostToDevice, third));
  ASSERT_OK(cudaEventRecord(before, third));
  ASSERT_OK(cudaMemcpyAsync(e, host, n, cudaMemcpyHostToDevice, fourth));
  ASSERT_OK(cudaEventRecord(behind, fourth));
  ASSERT_OK(cudaDeviceSynchronize());
  EXPECT_NEAR(elapsed_ms(begin, kernels), 0.1, 1e-6);  // beside the first kernel
  EXPECT_NEAR(elapsed_ms(begin, before), 0.1, 1e-6);   // while the copy of the second has to wait
  EXPECT_NEAR(elapsed_ms(begin, behind), 0.3, 1e-6);   // the engine has no time before
}

TEST_F(VirtualClock, SlowsDownWhatRunsBesideOtherWork) {
  cuda_on_host::set_clock("beside=2; copy=150e-6; *=100e-6");
  const Stream traffic, compute;
  const Floats a(n), b(n), c(n);
  const Event begin(cudaEventDefault), first(cudaEventDefault), second(cudaEventDefault);
  ASSERT_OK(cudaMemcpyAsync(b, a, n, cudaMemcpyDeviceToDevice, traffic));
  ASSERT_OK(cudaEventRecord(begin, compute));
  ASSERT_OK(start_fill(compute, c, 1, n));
  ASSERT_OK(cudaEventRecord(first, compute));
  ASSERT_OK(start_fill(compute, c, 1, n));
  ASSERT_OK(cudaEventRecord(second, compute));
  ASSERT_OK(cudaDeviceSynchronize());
  EXPECT_NEAR(elapsed_ms(begin, first), 0.175, 1e-6);  // 150 us at half speed, and 25 us alone
  EXPECT_NEAR(elapsed_ms(first, second), 0.1, 1e-6);
}

TEST_F(VirtualClock, CountsTheHostsTime) {
  cuda_on_host::set_clock("host=10e-6; *=2e-6");
  const Stream stream;
  const Floats a(n);
  const Event begin(cudaEventDefault), end(cudaEventDefault);
  ASSERT_OK(cudaEventRecord(begin, stream));
  for (int i = 0; i < 9; ++i) ASSERT_OK(start_fill(stream, a, 1, n));
  ASSERT_OK(cudaEventRecord(end, stream));
  ASSERT_OK(cudaStreamSynchronize(stream));
  EXPECT_NEAR(elapsed_ms(begin, end), 0.1, 1e-6);  // ten calls behind the first record's
}

TEST_F(VirtualClock, RepeatsItsJitterAndStaysWithinIt) {
  const auto run = [](std::uint64_t seed) {
    cuda_on_host::reset(cuda_on_host::Order::eager, seed);
    cuda_on_host::set_clock("jitter=0.2; *=100e-6");
    const Stream stream;
    const Floats a(n);
    std::vector<float> times;
    for (int i = 0; i < 50; ++i) {
      const Event begin(cudaEventDefault), end(cudaEventDefault);
      EXPECT_OK(cudaEventRecord(begin, stream));
      EXPECT_OK(start_fill(stream, a, 1, n));
      EXPECT_OK(cudaEventRecord(end, stream));
      EXPECT_OK(cudaStreamSynchronize(stream));
      times.push_back(elapsed_ms(begin, end));
    }
    return times;
  };
  const std::vector<float> times = run(7);
  EXPECT_EQ(times, run(7));
  EXPECT_NE(times, run(8));
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  EXPECT_GE(*least, 0.08F - 1e-5F);
  EXPECT_LE(*most, 0.12F + 1e-5F);
  EXPECT_GT(*most - *least, 0.02F);
}

TEST_F(VirtualClock, LeavesOutBodiesWhereItIsAsked) {
  const Stream stream;
  const Floats a(n);
  ASSERT_OK(start_fill(stream, a, 1, n));
  cuda_on_host::set_clock("bodies=0; *=1e-6");
  ASSERT_OK(start_fill(stream, a, 2, n));
  cuda_on_host::set_clock("");
  EXPECT_THAT(fetch(a, n, stream), testing::Each(1.F));
  ASSERT_OK(start_fill(stream, a, 2, n));
  EXPECT_THAT(fetch(a, n, stream), testing::Each(2.F));
}

TEST_F(VirtualClock, RefusesWhatItDoesNotUnderstand) {
  cuda_on_host::throw_on_misuse(true);
  for (const char* const text : {"copy", "copy=", "copy=fast", "copy=-1", "host=1+2", "=1",
                                 "copy=1e-6+1e9x", "beside=0.5", "jitter=2"})
    EXPECT_THROW(cuda_on_host::set_clock(text), std::logic_error) << text;
}

}  // namespace

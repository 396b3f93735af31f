// What contract tests share: handles that give back what they hold, and the orders of the doubles.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "tests/support/cuda_on_host/control.h"

namespace cuda_contract {

#define EXPECT_OK(call) EXPECT_EQ((call), cudaSuccess)
#define ASSERT_OK(call) ASSERT_EQ((call), cudaSuccess)

class Stream {
 public:
  explicit Stream(unsigned flags = cudaStreamNonBlocking) {
    EXPECT_OK(cudaStreamCreateWithFlags(&handle_, flags));
  }
  ~Stream() { EXPECT_OK(cudaStreamDestroy(handle_)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return handle_; }  // NOLINT: is used as the handle

 private:
  cudaStream_t handle_ = nullptr;
};

class Event {
 public:
  explicit Event(unsigned flags = cudaEventDisableTiming) {
    EXPECT_OK(cudaEventCreateWithFlags(&handle_, flags));
  }
  ~Event() { EXPECT_OK(cudaEventDestroy(handle_)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return handle_; }  // NOLINT: is used as the handle

 private:
  cudaEvent_t handle_ = nullptr;
};

// Floats on the device.
class Floats {
 public:
  explicit Floats(std::size_t n) { EXPECT_OK(cudaMalloc(&data_, n * sizeof(float))); }
  ~Floats() { EXPECT_OK(cudaFree(data_)); }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;
  operator float*() const { return static_cast<float*>(data_); }  // NOLINT: is used as the pointer

 private:
  void* data_ = nullptr;
};

// Floats of the host, pinned.
class PinnedFloats {
 public:
  explicit PinnedFloats(std::size_t n) { EXPECT_OK(cudaMallocHost(&data_, n * sizeof(float))); }
  ~PinnedFloats() { EXPECT_OK(cudaFreeHost(data_)); }
  PinnedFloats(const PinnedFloats&) = delete;
  PinnedFloats& operator=(const PinnedFloats&) = delete;
  operator float*() const { return static_cast<float*>(data_); }  // NOLINT: is used as the pointer

 private:
  void* data_ = nullptr;
};

inline constexpr cuda_on_host::Order all_orders[] = {
    cuda_on_host::Order::eager, cuda_on_host::Order::latest, cuda_on_host::Order::random};

// Calls body() once on a GPU; on the doubles in every order, under `seeds` seeds.
template <class Body>
void in_every_order(int seeds, Body body) {
  for (const cuda_on_host::Order order : all_orders)
    for (int seed = 1; seed <= seeds; ++seed) {
      SCOPED_TRACE(testing::Message() << "order " << static_cast<int>(order) << ", seed " << seed);
      cuda_on_host::reset(order, static_cast<std::uint64_t>(seed));
      body();
      if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) return;
      if (!cuda_on_host::present()) return;
    }
}

// Copies to the host, and waits.
inline std::vector<float> fetch(const float* device, std::size_t n, cudaStream_t stream) {
  std::vector<float> host(n);
  EXPECT_OK(
      cudaMemcpyAsync(host.data(), device, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  return host;
}

}  // namespace cuda_contract

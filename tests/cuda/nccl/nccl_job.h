// What tests of the NCCL executor share: a job whose ranks are threads, each with a GPU.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "runtime/channel/rank_threads.h"
#include "runtime/collective/nccl/nccl_executor.h"
#include "tests/support/collective_runs.h"
#include "tests/support/cuda_on_host/control.h"
#include "tests/support/cuda_on_host/nccl_control.h"

namespace paceline::test {

// Skips a test that needs more GPUs than there are.
#define PACELINE_NEEDS_GPUS(gpus)                                   \
  do {                                                              \
    if (runtime::CudaDevice::count() < (gpus))                      \
      GTEST_SKIP() << "needs " << (gpus) << " GPUs, and there are " \
                   << runtime::CudaDevice::count();                 \
  } while (false)

// A rank of the job.
struct NcclRank {
  runtime::Channel& channel;
  runtime::CudaDevice& device;
  runtime::NcclExecutor& executor;

  [[nodiscard]] int rank() const { return channel.rank(); }
};

// Throws the first error that is not the loss of a peer, or else the first, as run_as_threads() does.
inline void run_nccl_job(int ranks, const runtime::NcclOptions& options,
                         const std::function<void(const NcclRank&)>& work) {
  runtime::run_as_threads(ranks, 1, Seconds{20}, [&](const runtime::Endpoint& endpoint) {
    runtime::CudaDevice device(endpoint.channel.rank());
    runtime::NcclExecutor executor(endpoint.channel, device, options);
    work({endpoint.channel, device, executor});
  });
}

// A bucket on the GPU, with pinned memory through which it comes and goes.
class DeviceBucket {
 public:
  DeviceBucket(runtime::CudaDevice& device, const Bucket& values, NumberType type)
      : stream_(device.make_stream()),
        pinned_(device.allocate(values.size() + 1, runtime::MemoryKind::pinned)),
        memory_(device.allocate(values.size() + 1, runtime::MemoryKind::device)),
        elements_(values.size() / runtime::bytes_of(type)),
        type_(type) {
    if (values.empty()) return;
    std::memcpy(pinned_.data(), values.data(), values.size());
    stream_->start(runtime::Cast{host_view(), view()});
  }

  [[nodiscard]] runtime::ArrayView view() const { return memory_.array(type_).part(0, elements_); }
  // The numbers are on the GPU when it is done. Nobody has waited for that.
  [[nodiscard]] runtime::Token ready() { return stream_->record(); }
  // What is there once the token is done.
  [[nodiscard]] Bucket after(const runtime::Token& done) {
    stream_->wait_for(done);
    if (elements_ > 0) stream_->start(runtime::Cast{view(), host_view()});
    runtime::wait_for(stream_->record(), Seconds{20}, "copy a bucket");
    return {pinned_.data(), pinned_.data() + view().bytes()};
  }

 private:
  [[nodiscard]] runtime::ArrayView host_view() const {
    return pinned_.array(type_).part(0, elements_);
  }

  std::unique_ptr<runtime::Stream> stream_;  // last, so that it is waited for before memory goes
  runtime::Memory pinned_;
  runtime::Memory memory_;
  std::size_t elements_;
  NumberType type_;
};

// Begins a job on the doubles.
inline void begin(cuda_on_host::Order order, std::uint64_t seed) {
  cuda_on_host::reset(order, seed);
  cuda_on_host::nccl::reset();
}

// Nothing raced, and nothing is left over.
inline void expect_clean() {
  EXPECT_THAT(cuda_on_host::races(), testing::IsEmpty());
  EXPECT_THAT(cuda_on_host::leaks(), testing::IsEmpty());
  EXPECT_EQ(cuda_on_host::nccl::live_communicators(), 0);
}

}  // namespace paceline::test

// Tests: tests/cuda/device/cuda_device_test.cc.
#include "runtime/device/cuda/event_points.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "models/base/error.h"
#include "runtime/device/polling.h"

namespace paceline::runtime::cuda {
namespace {

// With this many events in use, record() looks whether the oldest may be used again.
constexpr std::size_t many_under_way = 32;
// For so long the host looks again at once. A short kernel takes as long from its start to its end.
constexpr std::chrono::microseconds spinning{50};

}  // namespace

EventPoints::EventPoints(int device_index, std::string operation)
    : device_index_(device_index), operation_(std::move(operation)) {}

std::uint64_t EventPoints::record(cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  if (free_.empty() && under_way_.size() >= many_under_way) look_at_oldest();
  EventHandle event;
  if (free_.empty()) {
    event = make_event_handle();
  } else {
    event = std::move(free_.back());
    free_.pop_back();
  }
  check(cudaEventRecord(event.get(), stream), "record a CUDA event");
  under_way_.push_back({++last_, std::move(event)});
  return last_;
}

// So the pool is about as large as what is under way, also where nobody tests tokens. An error is
// left to who does.
void EventPoints::look_at_oldest() {
  if (!under_way_.empty() && cudaEventQuery(under_way_.front().event.get()) == cudaSuccess)
    retire(under_way_.front().point);
}

cudaEvent_t EventPoints::event_of(std::uint64_t point) {
  PACELINE_ASSERT(point <= last_, "a point was recorded");
  if (point <= done_) return nullptr;
  return std::ranges::lower_bound(under_way_, point, {}, &Recorded::point)->event.get();
}

void EventPoints::retire(std::uint64_t point) {
  done_ = std::max(done_, point);
  while (!under_way_.empty() && under_way_.front().point <= point) {
    free_.push_back(std::move(under_way_.front().event));
    under_way_.pop_front();
  }
}

bool EventPoints::is_done(std::uint64_t point) {
  const std::lock_guard lock(mutex_);
  cudaEvent_t const event = event_of(point);
  if (event == nullptr) return true;
  const cudaError_t status = cudaEventQuery(event);
  if (status == cudaErrorNotReady) return false;
  check(status, operation_);
  retire(point);
  return true;
}

bool EventPoints::wait(std::uint64_t point, Seconds longest) {
  const auto start = std::chrono::steady_clock::now();
  while (!is_done(point)) {
    const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - start;
    if (std::chrono::duration<double>(waited).count() > longest.value()) return false;
    if (waited > spinning) pause_between_looks(waited);
  }
  return true;
}

void EventPoints::make_wait(cudaStream_t stream, std::uint64_t point) {
  const std::lock_guard lock(mutex_);
  cudaEvent_t const event = event_of(point);
  if (event == nullptr) return;
  const CurrentDevice current(device_index_);
  check(cudaStreamWaitEvent(stream, event, 0), "wait for a CUDA event");
}

}  // namespace paceline::runtime::cuda

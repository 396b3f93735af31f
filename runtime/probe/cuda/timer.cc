// Tests: tests/cuda/calibration.
#include "runtime/probe/cuda/timer.h"

#include <fmt/format.h>

#include <chrono>
#include <string>

#include "models/base/error.h"
#include "runtime/device/polling.h"
#include "runtime/device/token.h"

namespace paceline::runtime::cuda {

Marks::Marks(std::size_t expected) {
  for (std::size_t i = 0; i < expected; ++i) events_.push_back(make_event_handle(true));
}

void Marks::put(cudaStream_t stream) {
  if (used_ == events_.size()) events_.push_back(make_event_handle(true));
  check(cudaEventRecord(events_[used_].get(), stream), "record a CUDA event");
  ++used_;
}

void Marks::wait(std::string_view operation, std::size_t mark) {
  PACELINE_ASSERT(mark < used_, "the mark was put");
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    const cudaError_t status = cudaEventQuery(events_[mark].get());
    if (status != cudaErrorNotReady) return check(status, operation);
    const auto waited = std::chrono::steady_clock::now() - start;
    if (std::chrono::duration<double>(waited).count() > device_patience.value())
      throw RunError(std::string(operation),
                     fmt::format("the device was not done in {:g} s", device_patience.value()));
    pause_between_looks(waited);
  }
}

double Marks::seconds(std::size_t from, std::size_t to) const {
  float ms = 0;
  check(cudaEventElapsedTime(&ms, events_[from].get(), events_[to].get()),
        "read the time between two CUDA events");
  return static_cast<double>(ms) * 1e-3;
}

}  // namespace paceline::runtime::cuda

// Events with times on a stream of a CUDA device. Private to runtime/probe/cuda.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string_view>
#include <vector>

#include "runtime/device/cuda/handle.h"

namespace paceline::runtime::cuda {

// Marks in the order in which they are put into streams. They are used again after clear(), so that
// no event is made while something is timed.
class Marks {
 public:
  // The device is current when marks are put and read.
  explicit Marks(std::size_t expected = 2);

  void clear() { used_ = 0; }
  [[nodiscard]] std::size_t count() const { return used_; }
  // Puts a mark behind what is in the stream.
  void put(cudaStream_t stream);
  // Waits until the device has come to a mark, by default the one that was put last. Throws RunError
  // "cannot <operation>: ..." if it failed, or has not come in device_patience.
  void wait(std::string_view operation) { wait(operation, used_ - 1); }
  void wait(std::string_view operation, std::size_t mark);
  // Seconds from one mark to another, once the device has come to both.
  [[nodiscard]] double seconds(std::size_t from, std::size_t to) const;

 private:
  std::vector<EventHandle> events_;
  std::size_t used_ = 0;
};

}  // namespace paceline::runtime::cuda

// What the CUDA runtime hands out, owned: streams, events, graphs, memory. Each gives back what it
// holds at its end, and may be moved. What cannot be given back is left: a device that failed takes
// nothing back, and its error comes out of tokens.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <type_traits>

#include "runtime/device/cuda/status.h"

namespace paceline::runtime::cuda {

template <class Value, cudaError_t (*give_back)(Value*)>
struct GiveBack {
  void operator()(Value* value) const { static_cast<void>(give_back(value)); }
};
template <class Handle, cudaError_t (*give_back)(Handle)>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>,
                              GiveBack<std::remove_pointer_t<Handle>, give_back>>;

using StreamHandle = Owned<cudaStream_t, cudaStreamDestroy>;
using EventHandle = Owned<cudaEvent_t, cudaEventDestroy>;
using GraphHandle = Owned<cudaGraph_t, cudaGraphDestroy>;
using GraphExecHandle = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

// Each thread has a current device, to which calls go that name no stream. Makes a device current
// for as long as this lives.
class CurrentDevice {
 public:
  explicit CurrentDevice(int index) {
    check(cudaGetDevice(&before_), "find the current CUDA device");
    if (before_ == index)
      before_ = none;
    else
      check(cudaSetDevice(index), "use a CUDA device");
  }
  ~CurrentDevice() {
    if (before_ != none) static_cast<void>(cudaSetDevice(before_));
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  static constexpr int none = -1;
  int before_ = none;
};

// A stream that does not wait for the legacy default stream.
[[nodiscard]] inline StreamHandle make_stream_handle() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "make a CUDA stream");
  return StreamHandle(stream);
}
// An event without times, which costs less; or with, for measurements.
[[nodiscard]] inline EventHandle make_event_handle(bool timed = false) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming),
        "make a CUDA event");
  return EventHandle(event);
}

}  // namespace paceline::runtime::cuda

// Points in the work of one CUDA stream, by events from a pool. Points rise with the order of the
// stream's work. Who has a stream of its own, an executor for one, may keep its tokens by them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "models/base/units.h"
#include "runtime/device/cuda/handle.h"

namespace paceline::runtime::cuda {

// Thread safety: any thread may call any function.
class EventPoints {
 public:
  // `operation` says what fails where the device does: "run kernels on CUDA device 0".
  EventPoints(int device_index, std::string operation);
  // Events of work that is under way may be given back: CUDA keeps them until the work is done.
  ~EventPoints() = default;

  // Records a point behind what was put into the stream, and returns it. The first is 1.
  [[nodiscard]] std::uint64_t record(cudaStream_t stream);
  // These do what Token::Source (token.h) and CudaTokenSource (cuda_stream.h) say.
  [[nodiscard]] bool is_done(std::uint64_t point);
  [[nodiscard]] bool wait(std::uint64_t point, Seconds longest);
  void make_wait(cudaStream_t stream, std::uint64_t point);

 private:
  struct Recorded {
    std::uint64_t point = 0;
    EventHandle event;
  };
  // The event of the point, or of the first recorded behind it; null if it is known to be done. With the lock.
  [[nodiscard]] cudaEvent_t event_of(std::uint64_t point);
  // The work up to the event's point is done: keeps its event, and those before, for other points.
  void retire(std::uint64_t point);
  // Looks at the oldest event. With the lock.
  void look_at_oldest();

  int device_index_;
  std::string operation_;
  std::mutex mutex_;
  std::deque<Recorded> under_way_;  // in the order of their points
  std::vector<EventHandle> free_;
  std::uint64_t last_ = 0;  // recorded
  std::uint64_t done_ = 0;  // known to be done, with all before
};

}  // namespace paceline::runtime::cuda

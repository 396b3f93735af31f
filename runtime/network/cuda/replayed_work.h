// Work that is put into a stream again and again: started the first time, captured in a CUDA graph the
// second time, and launched as one from then on, which takes the host one call for all of it.
//
// The work is the same each time, down to the addresses of its memory; what changes is in that memory.
// It is for one stream. The first time is not captured, since libraries and modules load then, which a
// capture forbids. A graph holds no event: who needs a place inside the work in which an event is
// recorded cuts the work there. (An event node would be recorded by each launch; whether a stream that
// is made to wait for it right behind the launch waits for that record could not be tried, for want of
// a GPU. An event that is recorded between two launches is beyond doubt.)
//
// Private to runtime/network/cuda.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <map>
#include <string>

#include "runtime/device/cuda/handle.h"

namespace paceline::runtime::cuda {

// Whether work is replayed. It ends with the first work that cannot be captured.
class Replaying {
 public:
  explicit Replaying(bool wanted) : is_on_(wanted) {}

  [[nodiscard]] bool is_on() const { return is_on_; }
  // Why it ended, once; empty where it did not, or it was told.
  [[nodiscard]] std::string take_reason();
  void end(const std::string& reason);

 private:
  bool is_on_;
  std::string reason_;
};

class ReplayedWork {
 public:
  // Puts the work into the stream. `issue` does so call by call; it asks nothing of the device and
  // allocates nothing. `memory` names which of several arrays the work is on: each has a graph. Throws
  // what issue() throws when it is not captured, and RunError if a graph cannot be launched.
  void put(cudaStream_t stream, Replaying& replaying, const void* memory,
           const std::function<void()>& issue);

 private:
  bool was_started_ = false;
  std::map<const void*, GraphExecHandle> graphs_;
};

}  // namespace paceline::runtime::cuda

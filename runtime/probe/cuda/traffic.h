// What stands for a collective while layers are timed. Private to runtime/probe/cuda.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "runtime/device/cuda/cuda_device.h"

namespace paceline::runtime::cuda {

class Traffic {
 public:
  virtual ~Traffic() = default;
  [[nodiscard]] virtual std::string description() const = 0;
  // Puts this many rounds of it into streams of its own, behind what is there.
  virtual void start(int rounds) = 0;
  // The stream of the device whose layers are timed.
  [[nodiscard]] virtual cudaStream_t stream() = 0;
};

// On a GPU that is alone: what a rank does that reaches its peers through pinned memory. Each round
// copies a message to the host and one to the device, and adds it.
[[nodiscard]] std::unique_ptr<Traffic> make_staged_traffic(CudaDevice& device,
                                                           std::size_t message_bytes);

// An all-reduce of NCCL between the first `ranks` GPUs, of which the timed one is number `device`. Null
// where this build has no NCCL.
[[nodiscard]] std::unique_ptr<Traffic> make_nccl_traffic(int device, int ranks,
                                                         std::size_t bucket_bytes);

}  // namespace paceline::runtime::cuda

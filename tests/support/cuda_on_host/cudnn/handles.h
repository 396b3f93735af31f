// cuDNN's handles, and the last error of each thread.
#pragma once

#include <cudnn_graph.h>

#include <string>

// cuDNN declares it.
struct cudnnContext {
  int device = 0;
  int architecture = 0;  // 90
  cudaStream_t stream = nullptr;
  bool destroyed = false;
};

namespace cuda_on_host::cudnn {

// Aborts (die) for a handle that was destroyed or never was; throws Refusal for null.
[[nodiscard]] cudnnContext& live_handle(cudnnHandle_t handle);
// Throws Refusal where there is no device.
[[nodiscard]] int architecture_of_current_device();

// What cudnnGetLastErrorString() has to say in this thread.
void note_reason(const std::string& why);

}  // namespace cuda_on_host::cudnn

// The CUDA backend, as a module that is loaded when it is asked for: the command starts without
// libraries of CUDA, and on machines that have none.
#pragma once

#include <memory>
#include <string>

#include "runtime/training/backend.h"

namespace paceline::runtime {

// The number of GPUs that this process can use. Throws UnavailableError if the module is not there
// or was built without CUDA; RunError if the driver fails otherwise.
[[nodiscard]] int cuda_devices();

// A rank's end of GPU number `index`. Throws as cuda_devices() does, and RunError if there is no such
// GPU.
[[nodiscard]] std::unique_ptr<Backend> load_cuda_backend(int index);

// "13.0, NCCL 2.28.9", or why there is none.
[[nodiscard]] std::string cuda_version();

}  // namespace paceline::runtime

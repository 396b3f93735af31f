// The CUDA backend, as a module that is loaded when it is asked for: the command starts without
// libraries of CUDA, and on machines that have none.
#pragma once

#include <memory>
#include <string>

#include "runtime/probe/device_probe.h"
#include "runtime/training/backend.h"

namespace paceline::runtime {

// The number of GPUs that this process can use. Throws UnavailableError if the module is not there
// or was built without CUDA; RunError if the driver fails otherwise.
[[nodiscard]] int cuda_devices();

// What computes layers on a GPU: kernels of our own, which are slow where layers are convolutions;
// cuDNN; or cuDNN where it was built in, starts and has plans for all layers, and our own elsewhere,
// with a note of why.
enum class LayersBy { automatic, own, cudnn };

struct CudaLayers {
  LayersBy by = LayersBy::automatic;
  std::string plans = {};  // cuDNN's file of plans; the one in the user's cache if it is empty
  int threads = 0;         // that make plans; 0: one for each core
};

// A rank's end of GPU number `index`. Throws as cuda_devices() does, RunError if there is no such
// GPU, and UnavailableError where cuDNN was asked for and cannot be used.
[[nodiscard]] std::unique_ptr<Backend> load_cuda_backend(int index, const CudaLayers& layers = {});

// A probe of GPU number `index`, whose networks are those of load_cuda_backend(), and which uses the other
// GPUs, too, if `all_devices` (NCCL). Throws as load_cuda_backend() does.
[[nodiscard]] std::unique_ptr<DeviceProbe> load_cuda_probe(int index, bool all_devices,
                                                           const CudaLayers& layers = {});

// "13.0, NCCL 2.28.9, cuDNN 9.19.0", or why there is none.
[[nodiscard]] std::string cuda_version();

}  // namespace paceline::runtime

// The probe of a CUDA device: device_probe.h by CUDA events, on streams of its own. Networks are those of a
// backend that trains; a collective is NCCL's where there are several GPUs.
#pragma once

#include <memory>

#include "runtime/probe/device_probe.h"
#include "runtime/training/backend.h"

namespace paceline::runtime {

// The device of the backend is a CudaDevice, and its networks are CudaNetworks. Where `all_devices` is
// false, other GPUs are left alone.
[[nodiscard]] std::unique_ptr<DeviceProbe> make_cuda_probe(std::unique_ptr<Backend> backend,
                                                           bool all_devices);

}  // namespace paceline::runtime

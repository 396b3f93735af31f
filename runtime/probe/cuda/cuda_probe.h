// The probe of a CUDA device: device_probe.h by CUDA events, on streams of its own. Layers are those of
// CudaNetwork; a collective is NCCL's where there are several GPUs.
#pragma once

#include <memory>

#include "runtime/probe/device_probe.h"

namespace paceline::runtime {

// The GPU of that number. Where `all_devices` is false, the others are left alone. Throws as CudaDevice
// does.
[[nodiscard]] std::unique_ptr<DeviceProbe> make_cuda_probe(int index, bool all_devices);

}  // namespace paceline::runtime

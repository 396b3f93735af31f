// Arrays between the host's own memory and whatever memory a device computes in: for checkpoints
// and for what happens once, since each call waits and takes staging memory.
#pragma once

#include <span>
#include <vector>

#include "runtime/device/device.h"

namespace paceline::runtime {

// The numbers of an FP32 array, behind what was started on the stream.
[[nodiscard]] std::vector<float> to_host(Device& device, Stream& stream,
                                         const ConstArrayView& source);
// Copies numbers of the host into an FP32 array, behind what was started on the stream.
void copy_from_host(Device& device, Stream& stream, std::span<const float> source,
                    const ArrayView& target);

}  // namespace paceline::runtime

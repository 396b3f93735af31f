// Tests: tests/runtime/device/copies_test.cc.
#include "runtime/device/copies.h"

#include <algorithm>

#include "models/base/error.h"

namespace paceline::runtime {

std::vector<float> to_host(Device& device, Stream& stream, const ConstArrayView& source) {
  Memory staging;
  ConstArrayView readable = source;
  if (source.kind == MemoryKind::device) {
    staging = device.allocate(source.bytes(), MemoryKind::pinned);
    const ArrayView staged = staging.array(NumberType::fp32);
    stream.start(Cast{source, staged});
    readable = staged;
  }
  wait_for(stream.record(), device_patience, "copy to the host");
  const std::span<const float> values = host_floats(readable);
  return {values.begin(), values.end()};
}

void copy_from_host(Device& device, Stream& stream, std::span<const float> source,
                    const ArrayView& target) {
  PACELINE_ASSERT(source.size() == target.elements, "both arrays are of one length");
  if (target.kind != MemoryKind::device) {
    wait_for(stream.record(), device_patience, "copy from the host");
    std::ranges::copy(source, host_floats(target).begin());
    return;
  }
  const Memory staging = device.allocate(target.bytes(), MemoryKind::pinned);
  const ArrayView staged = staging.array(NumberType::fp32);
  std::ranges::copy(source, host_floats(staged).begin());
  stream.start(Cast{staged, target});
  wait_for(stream.record(), device_patience, "copy from the host");
}

}  // namespace paceline::runtime

// Tests: tests/runtime/device/copies_test.cc.
#include "runtime/device/copies.h"

#include <algorithm>

#include "models/base/error.h"

namespace paceline::runtime {

void copy_to_host(Device& device, Stream& stream, const ConstArrayView& source,
                  std::span<float> target) {
  PACELINE_ASSERT(source.elements == target.size(), "both arrays are of one length");
  if (source.kind != MemoryKind::device) {
    wait_for(stream.record(), device_patience, "copy to the host");
    std::ranges::copy(host_floats(source), target.begin());
    return;
  }
  const Memory staging = device.allocate(source.bytes(), MemoryKind::pinned);
  const ArrayView staged = staging.array(NumberType::fp32);
  stream.start(Cast{source, staged});
  wait_for(stream.record(), device_patience, "copy to the host");
  std::ranges::copy(host_floats(staged), target.begin());
}

std::vector<float> to_host(Device& device, Stream& stream, const ConstArrayView& source) {
  std::vector<float> values(source.elements);
  copy_to_host(device, stream, source, values);
  return values;
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

// Tests: tests/runtime/device/cpu_device_test.cc.
#include "runtime/device/device.h"

namespace paceline::runtime {

std::optional<MemoryKind> fastest_common(const Device& device, const MemoryKinds& others) {
  for (const MemoryKind kind : {device.fastest(), MemoryKind::pinned, MemoryKind::host}) {
    if (device.takes().contains(kind) && others.contains(kind)) return kind;
  }
  return std::nullopt;
}

}  // namespace paceline::runtime

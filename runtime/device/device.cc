// Tests: tests/runtime/device/cpu_device_test.cc.
#include "runtime/device/device.h"

#include <fmt/core.h>

#include "models/base/error.h"

namespace paceline::runtime {

std::optional<MemoryKind> fastest_common(const Device& device, const MemoryKinds& others) {
  for (const MemoryKind kind : {device.fastest(), MemoryKind::pinned, MemoryKind::host}) {
    if (device.takes().contains(kind) && others.contains(kind)) return kind;
  }
  return std::nullopt;
}

MemoryKind common_kind(const Device& device, const MemoryKinds& others, std::string_view taker) {
  if (const auto kind = fastest_common(device, others)) return *kind;
  throw InputError(
      fmt::format("{} takes no memory that device {} computes in", taker, device.name()),
      "choose another transport or another device");
}

}  // namespace paceline::runtime

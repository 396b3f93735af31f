// The CPU as a device. A kernel runs in the call that starts it, so its tokens are done when they
// are made, and waiting for a token of another source blocks the host.
#pragma once

#include "runtime/device/device.h"

namespace paceline::runtime {

// Runs a kernel on this thread.
void run_on_cpu(const Kernel& kernel);

class CpuDevice final : public Device {
 public:
  [[nodiscard]] std::string_view name() const override { return "cpu"; }
  [[nodiscard]] MemoryKinds takes() const override {
    return {MemoryKind::host, MemoryKind::pinned};
  }
  [[nodiscard]] MemoryKind fastest() const override { return MemoryKind::host; }
  // Gives host_memory(), whatever the kind.
  [[nodiscard]] Memory allocate(std::size_t bytes, MemoryKind kind) override;
  [[nodiscard]] std::unique_ptr<Stream> make_stream() override;
};

// The device of whoever was given none. It has no state, so that all may share it.
[[nodiscard]] Device& cpu_device();

}  // namespace paceline::runtime

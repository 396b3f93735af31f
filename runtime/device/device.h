// The device seam: what the runtime asks of whatever computes. The executor, the gradient exchange,
// the optimizer and the training loop start kernels on a stream and wait for tokens; they never
// assume that a kernel is done when the call that starts it returns.
//
// Implementations: the CPU (cpu_device.h), whose kernels run in the call that starts them, and in
// tests a device whose kernels run as late as they may (tests/support/late_device.h).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>

#include "runtime/device/kernels.h"
#include "runtime/device/memory.h"
#include "runtime/device/token.h"

namespace paceline::runtime {

// An in-order queue of kernels. Kernels of different streams are in no order, except for wait_for().
//
// Thread safety: one thread at a time calls one stream. Its tokens may be tested and waited for by
// any thread while no other does so.
class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  // Waits for what was started.
  virtual ~Stream() = default;

  // Starts a kernel behind those that were started before. Throws RunError if the device cannot
  // take it; what fails later is thrown by tokens.
  virtual void start(const Kernel& kernel) = 0;
  // Kernels that are started on this stream after this call run once the token is done. The host
  // does not wait where the token's source and this stream are of one device. The host waits for a
  // token of another source, for device_patience at most.
  virtual void wait_for(const Token& token) = 0;
  // A token that is done when all that was started is.
  [[nodiscard]] virtual Token record() = 0;
};

class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;  // "cpu"
  // The kinds of memory that its kernels work on, and the one on which they are fastest.
  [[nodiscard]] virtual MemoryKinds takes() const = 0;
  [[nodiscard]] virtual MemoryKind fastest() const = 0;
  // Memory that is not zeroed, at an address that suits every number type. A kind that the device
  // has no need of is host memory. Throws RunError or std::bad_alloc if there is none left.
  [[nodiscard]] virtual Memory allocate(std::size_t bytes, MemoryKind kind) = 0;
  // The stream does not outlive the device.
  [[nodiscard]] virtual std::unique_ptr<Stream> make_stream() = 0;
};

// The kind of memory that the device is fastest in among those that others take, too; nothing if
// there is none.
[[nodiscard]] std::optional<MemoryKind> fastest_common(const Device& device,
                                                       const MemoryKinds& others);
// The same where there must be one: throws InputError if there is none. `taker` says who takes the
// others: "transport threads".
[[nodiscard]] MemoryKind common_kind(const Device& device, const MemoryKinds& others,
                                     std::string_view taker);

}  // namespace paceline::runtime

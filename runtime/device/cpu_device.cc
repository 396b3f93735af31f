// Tests: tests/runtime/device/cpu_device_test.cc.
#include "runtime/device/cpu_device.h"

#include <algorithm>
#include <cstring>

#include "runtime/device/cpu_update.h"
#include "runtime/tensor/kernels.h"

namespace paceline::runtime {
namespace {

// The arrays of a kernel, of one length each.
std::span<const float> floats(const ConstArrayView& view) {
  return {reinterpret_cast<const float*>(view.data), view.elements};
}
std::span<float> floats(const ArrayView& view) {
  return {reinterpret_cast<float*>(view.data), view.elements};
}

struct OnCpu {
  void operator()(const Cast& k) const {
    if (k.source.type == NumberType::fp32)
      cast_from_fp32(floats(k.source), k.target.type, k.target.data);
    else if (k.target.type == NumberType::fp32)
      cast_to_fp32(k.source.data, k.source.type, floats(k.target));
    else
      std::memcpy(k.target.data, k.source.data, k.source.bytes());
  }
  void operator()(const CastMany& k) const {
    for (const Cast& cast : k.table->casts()) (*this)(cast);
  }
  void operator()(const Add& k) const {
    if (k.target.type == k.source.type)
      add(k.source.type, k.target.data, k.source.data, k.source.elements);
    else
      add_to_fp32(floats(k.target), k.source.data, k.source.type);
  }
  void operator()(const Fill& k) const { std::ranges::fill(floats(k.target), k.value); }
  void operator()(const UpdateParameters& k) const { update_on_cpu(k); }
  void operator()(const FindNotFinite& k) const {
    if (!all_finite(floats(k.values))) *k.found = 1;
  }
  // In parts that are still in the cache when they are looked at.
  void operator()(const Unscale& k) const {
    constexpr std::size_t part = 4096;
    for (std::size_t first = 0; first < k.target.elements; first += part) {
      const std::size_t count = std::min(part, k.target.elements - first);
      const std::span<float> target = floats(k.target.part(first, count));
      const ConstArrayView source = k.source.part(first, count);
      if (k.source.data != k.target.data) cast_to_fp32(source.data, source.type, target);
      // A cast to FP32 has made NaN what it is to be, and a copy has not.
      if (k.factor != 1 || source.type == NumberType::fp32) scale(target, k.factor);
      if (!all_finite(target)) *k.found = 1;
    }
  }
};

class CpuStream final : public Stream {
 public:
  void start(const Kernel& kernel) override { run_on_cpu(kernel); }
  void wait_for(const Token& token) override {
    runtime::wait_for(token, device_patience, "go on computing");
  }
  [[nodiscard]] Token record() override { return {}; }
};

}  // namespace

void run_on_cpu(const Kernel& kernel) {
  std::visit(OnCpu{}, kernel);
}

Memory CpuDevice::allocate(std::size_t bytes, MemoryKind /*kind*/) {
  return host_memory(bytes);
}

std::unique_ptr<Stream> CpuDevice::make_stream() {
  return std::make_unique<CpuStream>();
}

Device& cpu_device() {
  static CpuDevice device;
  return device;
}

}  // namespace paceline::runtime

// Tests: tests/runtime/device/host_memory_test.cc.
#include "runtime/device/spare_memory.h"

#include <algorithm>
#include <utility>

namespace paceline::runtime {

Memory SpareMemory::take(std::size_t bytes) {
  const auto found = std::ranges::lower_bound(all_, bytes, {}, &Memory::size);
  if (found == all_.end()) {
    if (!all_.empty()) all_.pop_back();
    return host_memory(bytes);
  }
  Memory memory = std::move(*found);
  all_.erase(found);
  return memory;
}

void SpareMemory::put_back(Memory&& memory) {
  if (memory.data() == nullptr) return;
  all_.insert(std::ranges::upper_bound(all_, memory.size(), {}, &Memory::size), std::move(memory));
}

}  // namespace paceline::runtime

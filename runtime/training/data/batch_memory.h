// Memory for the batches of loaders that follow one another. What a loader gives back the next one
// takes: pinned memory takes long to allocate, and copies to a device may still read it.
//
// Thread safety: one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/device/memory.h"

namespace paceline::runtime {

class BatchMemory {
 public:
  explicit BatchMemory(std::function<Memory(std::size_t)> allocate)
      : free_(std::make_shared<std::vector<Memory>>()), allocate_(std::move(allocate)) {}

  // Memory of that size, which comes back here when it is released.
  [[nodiscard]] Memory take(std::size_t bytes) {
    const auto found =
        std::ranges::find_if(*free_, [&](const Memory& memory) { return memory.size() == bytes; });
    Memory block;
    if (found != free_->end()) {
      block = std::move(*found);
      free_->erase(found);
    } else {
      free_->clear();  // of a batch of another size
      block = allocate_(bytes);
    }
    std::byte* const data = block.data();
    const MemoryKind kind = block.kind();
    const auto held = std::make_shared<Memory>(std::move(block));
    return {data, bytes, kind,
            [free = free_, held](std::byte*) { free->push_back(std::move(*held)); }};
  }

 private:
  std::shared_ptr<std::vector<Memory>> free_;
  std::function<Memory(std::size_t)> allocate_;
};

}  // namespace paceline::runtime

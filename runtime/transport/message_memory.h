// Memory that messages leave from and land in: buckets, and the executor's scratch.
//
// It is in huge pages where the kernel has them. Open MPI lets the kernel copy a large message from
// one process to another, which looks each page up: small ones cost a third of the time (2 ranks,
// 4 MiB, November 2026).
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>

namespace paceline::runtime {

class MessageMemory {
 public:
  MessageMemory() = default;
  // Not zeroed: a page comes when it is touched. Throws std::bad_alloc.
  explicit MessageMemory(std::size_t size);

  [[nodiscard]] std::span<std::byte> bytes() const { return {memory_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t size_ = 0;
};

}  // namespace paceline::runtime

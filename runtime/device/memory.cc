// Tests: tests/runtime/device/cpu_device_test.cc.
#include "runtime/device/memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace paceline::runtime {
namespace {

constexpr std::size_t small_page = std::size_t{1} << 12;
constexpr std::size_t huge_page = std::size_t{1} << 21;

}  // namespace

std::string_view name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::host:
      return "host";
    case MemoryKind::pinned:
      return "pinned";
    case MemoryKind::device:
      return "device";
  }
  return {};
}

Memory host_memory(std::size_t bytes) {
  // Less than a sixteenth of a huge page is not worth one.
  const std::size_t page = bytes < huge_page / 16 ? small_page : huge_page;
  const std::size_t whole = (bytes + page - 1) / page * page;
  if (whole == 0) return {};
  auto* const data = static_cast<std::byte*>(std::aligned_alloc(page, whole));
  if (data == nullptr) throw std::bad_alloc();
  if (page == huge_page) madvise(data, whole, MADV_HUGEPAGE);  // advice, which may be refused
  return {data, bytes, MemoryKind::host, [](std::byte* memory) { std::free(memory); }};
}

}  // namespace paceline::runtime

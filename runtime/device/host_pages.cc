// Tests: tests/runtime/device/host_memory_test.cc.
#include "runtime/device/host_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "models/base/to_size.h"

namespace paceline::runtime {
namespace {

// Advises on the whole pages inside a range. Where the system refuses advice, the memory stays as it is.
void advise(std::byte* data, std::size_t bytes, int advice) {
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const auto begin = (address + page - 1) / page * page;
  const auto end = (address + bytes) / page * page;
  if (begin < end) ::madvise(data + (begin - address), end - begin, advice);
}

}  // namespace

void use_small_pages(const ArrayView& array) {
  PACELINE_ASSERT(array.kind == MemoryKind::host, "pages are of host memory");
  advise(array.data, array.bytes(), MADV_NOHUGEPAGE);
}

void give_back_all_but(const models::Elements& kept, const models::Elements& range,
                       const ArrayView& array) {
  PACELINE_ASSERT(array.kind == MemoryKind::host, "pages are of host memory");
  const auto give_back = [&](std::int64_t begin, std::int64_t end) {
    const ArrayView part = array.part(to_size(begin), to_size(end - begin));
    advise(part.data, part.bytes(), MADV_DONTNEED);
  };
  give_back(range.begin, kept.begin);
  give_back(kept.end(), range.end());
}

}  // namespace paceline::runtime

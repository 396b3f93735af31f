// Tests: tests/runtime/executor_test.cc.
#include "runtime/transport/message_memory.h"

#include <sys/mman.h>

#include <new>

namespace paceline::runtime {
namespace {

constexpr std::size_t small_page = std::size_t{1} << 12;
constexpr std::size_t huge_page = std::size_t{1} << 21;

}  // namespace

MessageMemory::MessageMemory(std::size_t size) : size_(size) {
  // Less than a sixteenth of a huge page is not worth one.
  const std::size_t page = size < huge_page / 16 ? small_page : huge_page;
  const std::size_t whole = (size + page - 1) / page * page;
  if (whole == 0) return;
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(page, whole)));
  if (memory_ == nullptr) throw std::bad_alloc();
  if (page == huge_page) madvise(memory_.get(), whole, MADV_HUGEPAGE);  // advice: it may fail
}

}  // namespace paceline::runtime

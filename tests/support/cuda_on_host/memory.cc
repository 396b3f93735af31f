#include "tests/support/cuda_on_host/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "tests/support/cuda_on_host/faults.h"
#include "tests/support/cuda_on_host/happens_before.h"
#include "tests/support/cuda_on_host/trace.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace cuda_on_host {
namespace {

constexpr std::size_t alignment = 256;
constexpr int poison = 0xff;
constexpr unsigned char beside = 0xa5;
constexpr std::size_t stated_memory = std::size_t{80} << 30;  // an H100's, device.cc

struct Table {
  std::map<const std::byte*, Allocation> allocations;
  std::map<int, std::size_t> used;  // of devices
  std::size_t limit = 0;
  std::set<Allocation*> closed_pinned;
};

Table& table() {
  static Table* const one = new Table;
  return *one;
}

std::size_t page() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}
std::size_t round_up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

void protect(void* first, std::size_t bytes, int protection) {
  if (bytes > 0 && mprotect(first, bytes, protection) != 0)
    die("mprotect failed: too many mappings, or no memory for them");
}

// Sets the protection of the pages that hold the access and belong to the allocation.
void protect_pages(const Allocation& allocation, const Access& access, int protection) {
  const auto first = reinterpret_cast<std::uintptr_t>(access.first) / page() * page();
  const auto end = round_up(reinterpret_cast<std::uintptr_t>(access.first) + access.bytes, page());
  const auto low = std::max(first, reinterpret_cast<std::uintptr_t>(allocation.pages));
  const auto high =
      std::min(end, reinterpret_cast<std::uintptr_t>(allocation.pages) + allocation.page_bytes);
  if (low < high) protect(reinterpret_cast<void*>(low), high - low, protection);
}

void fill_beside(const Allocation& a) {
  const auto before = static_cast<std::size_t>(a.first - a.pages);
  std::memset(a.pages, beside, before);
  std::memset(a.first + a.bytes, beside, a.page_bytes - before - a.bytes);
#ifdef __SANITIZE_ADDRESS__
  ASAN_POISON_MEMORY_REGION(a.pages, before);
  ASAN_POISON_MEMORY_REGION(a.first + a.bytes, a.page_bytes - before - a.bytes);
#endif
}

void check_beside(const Allocation& a) {
#ifdef __SANITIZE_ADDRESS__
  ASAN_UNPOISON_MEMORY_REGION(a.pages, a.page_bytes);
#endif
  const auto is_beside = [](std::byte b) { return b == std::byte{beside}; };
  if (!std::all_of(a.pages, a.first, is_beside) ||
      !std::all_of(a.first + a.bytes, a.pages + a.page_bytes, is_beside))
    die("something was written right beside " + place_of(a.first));
}

// The host may touch what no operation touches that it has not waited for.
void protect_pinned(Allocation& a) {
  std::vector<Access> pending = pending_accesses(a.first, a.bytes);
  if (records_touches(a.first)) pending.push_back({a.first, a.bytes, true});
  protect(a.pages, a.page_bytes, PROT_READ | PROT_WRITE);
  for (const Access& access : pending)
    if (!access.writes) protect_pages(a, access, PROT_READ);
  for (const Access& access : pending)
    if (access.writes) protect_pages(a, access, PROT_NONE);
  if (pending.empty())
    table().closed_pinned.erase(&a);
  else
    table().closed_pinned.insert(&a);
}

void protect_as_at_rest(Allocation& a) {
  if (a.freed || a.pages == nullptr) return;
  if (a.kind == MemoryKind::device)
    protect(a.pages, a.page_bytes, PROT_NONE);
  else
    protect_pinned(a);
}

bool opens_everything(const Operation& operation) {
  return operation.ready != nullptr;
}

}  // namespace

Allocation* find_allocation(const void* address) {
  auto& all = table().allocations;
  const auto* const at = static_cast<const std::byte*>(address);
  auto after = all.upper_bound(at);
  if (after == all.begin()) return nullptr;
  Allocation& a = std::prev(after)->second;
  return at < a.first + std::max<std::size_t>(a.bytes, 1) ? &a : nullptr;
}

const std::byte* allocation_of(const void* address) {
  const Allocation* const a = find_allocation(address);
  return a == nullptr ? nullptr : a->first;
}

std::string place_of(const void* address) {
  const Allocation* const a = find_allocation(address);
  if (a == nullptr) return "memory that the double did not give";
  std::string place = "byte " + std::to_string(static_cast<const std::byte*>(address) - a->first) +
                      " of the " + std::to_string(a->bytes) + " bytes that ";
  place += a->kind == MemoryKind::device   ? "cudaMalloc gave"
           : a->kind == MemoryKind::pinned ? "cudaHostAlloc gave"
                                           : "cudaHostRegister took";
  place += " on device " + std::to_string(a->device);
  if (a->freed) place += ", freed by now";
  return place;
}

std::byte* allocate(MemoryKind kind, int device, std::size_t bytes, unsigned flags) {
  Table& t = table();
  if (kind == MemoryKind::device && t.used[device] + bytes > memory_of_a_device()) return nullptr;
  const std::size_t page_bytes = round_up(std::max<std::size_t>(bytes, 1), page());
  const std::size_t mapped_bytes = page_bytes + 2 * page();
  void* const mapped =
      mmap(nullptr, mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  catch_faults();
  Allocation a;
  a.bytes = bytes;
  a.kind = kind;
  a.device = device;
  a.flags = flags;
  a.pages = static_cast<std::byte*>(mapped) + page();
  a.page_bytes = page_bytes;
  a.first = a.pages + page_bytes - round_up(std::max<std::size_t>(bytes, 1), alignment);
  protect(a.pages, a.page_bytes, PROT_READ | PROT_WRITE);
  std::memset(a.first, poison, bytes);
  fill_beside(a);
  if (kind == MemoryKind::device) t.used[device] += bytes;
  Allocation& kept = t.allocations[a.first] = a;
  protect_as_at_rest(kept);
  return a.first;
}

void register_memory(void* first, int device, std::size_t bytes, unsigned flags) {
  Allocation a;
  a.first = static_cast<std::byte*>(first);
  a.bytes = bytes;
  a.kind = MemoryKind::registered;
  a.device = device;
  a.flags = flags;
  table().allocations[a.first] = a;
}

void release(Allocation& a) {
  forget_accesses(a.first, a.bytes);
  if (a.kind == MemoryKind::registered) {
    table().allocations.erase(a.first);
    return;
  }
  protect(a.pages, a.page_bytes, PROT_READ | PROT_WRITE);
  check_beside(a);
  a.freed = true;
  table().closed_pinned.erase(&a);
  if (a.kind == MemoryKind::device) table().used[a.device] -= a.bytes;
  madvise(a.pages, a.page_bytes, MADV_DONTNEED);
  protect(a.pages, a.page_bytes, PROT_NONE);
}

void check_range(const void* first, std::size_t bytes, const std::string& what) {
  if (bytes == 0) return;
  const Allocation* const a = find_allocation(first);
  if (a == nullptr) return;
  if (a->freed) die(what + " " + place_of(first));
  const auto before = static_cast<std::size_t>(static_cast<const std::byte*>(first) - a->first);
  if (bytes > a->bytes - before)
    die(what + " " + std::to_string(bytes) + " bytes, " +
        std::to_string(bytes - (a->bytes - before)) + " too many, from " + place_of(first));
}

void open_for(const Operation& operation) {
  if (opens_everything(operation)) {
    for (auto& [first, a] : table().allocations)
      if (!a.freed && a.pages != nullptr) protect(a.pages, a.page_bytes, PROT_READ | PROT_WRITE);
    return;
  }
  for (const bool writes : {false, true})
    for (const Access& access : operation.accesses) {
      const Allocation* const a = find_allocation(access.first);
      if (a == nullptr || a->freed || a->pages == nullptr || access.writes != writes) continue;
      protect_pages(*a, access, writes ? PROT_READ | PROT_WRITE : PROT_READ);
    }
}

void close_after(const Operation& operation) {
  if (opens_everything(operation)) {
    for (auto& [first, a] : table().allocations) protect_as_at_rest(a);
    return;
  }
  for (const Access& access : operation.accesses) {
    Allocation* const a = find_allocation(access.first);
    if (a != nullptr) protect_as_at_rest(*a);
  }
}

void close_pinned(const Operation& operation) {
  for (const Access& access : operation.accesses) {
    Allocation* const a = find_allocation(access.first);
    if (a != nullptr && !a->freed && a->kind == MemoryKind::pinned) protect_pinned(*a);
  }
}

void open_waited_pinned() {
  const std::set<Allocation*> closed = table().closed_pinned;
  for (Allocation* const a : closed) protect_pinned(*a);
}

void set_memory_limit(std::size_t bytes) {
  table().limit = bytes;
}
std::size_t memory_of_a_device() {
  return table().limit > 0 ? table().limit : stated_memory;
}
std::size_t memory_used(int device) {
  return table().used[device];
}

std::vector<std::string> memory_leaks() {
  std::vector<std::string> leaks;
  for (const auto& [first, a] : table().allocations)
    if (!a.freed) leaks.push_back(place_of(first));
  return leaks;
}

void forget_all_memory() {
  for (auto& [first, a] : table().allocations) {
    if (a.pages == nullptr) continue;
#ifdef __SANITIZE_ADDRESS__
    ASAN_UNPOISON_MEMORY_REGION(a.pages, a.page_bytes);
#endif
    munmap(a.pages - page(), a.page_bytes + 2 * page());
  }
  table() = Table{};
}

}  // namespace cuda_on_host

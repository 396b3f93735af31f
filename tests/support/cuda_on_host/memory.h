// Memory of the double: on devices, pinned, and registered memory of the program.
//
// Device and pinned allocations have pages of their own, with closed pages on both sides. They are
// aligned to 256 bytes and filled with 0xff, which is NaN in every floating-point type. The bytes
// between an allocation and its pages' ends hold a pattern that is checked when it is freed. Freed
// memory stays closed until reset().
//
// Device memory is closed unless an operation runs, and then what the operation declares is open: by
// pages, to read or to write. A host that follows a device pointer, and a kernel that touches what it
// does not declare, end the program with a line that names them. Pinned memory is closed to the host
// while an operation that the host has not waited for writes there, and closed to writing while one
// reads there; a touch is reported as a race, and the program goes on. System calls do not raise
// faults: they return EFAULT there.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tests/support/cuda_on_host/world.h"

namespace cuda_on_host {

enum class MemoryKind { device, pinned, registered };

struct Allocation {
  std::byte* first = nullptr;
  std::size_t bytes = 0;
  MemoryKind kind = MemoryKind::device;
  int device = 0;
  unsigned flags = 0;  // of cudaHostAlloc or cudaHostRegister
  bool freed = false;
  std::byte* pages = nullptr;  // null for registered memory
  std::size_t page_bytes = 0;
};

// The allocation in which the address lies, freed ones too; null for pageable memory.
[[nodiscard]] Allocation* find_allocation(const void* address);
// Its first byte, or null.
[[nodiscard]] const std::byte* allocation_of(const void* address);
// "byte 12 of the 4096 bytes that cudaMalloc gave on device 0"
[[nodiscard]] std::string place_of(const void* address);

// Null if the device's limit does not allow it.
[[nodiscard]] std::byte* allocate(MemoryKind kind, int device, std::size_t bytes, unsigned flags);
void register_memory(void* first, int device, std::size_t bytes, unsigned flags);
// Closes or forgets an allocation. Aborts (die) if something was written beside it.
void release(Allocation& allocation);
// Aborts (die) if the range begins in an allocation and does not end there, or in a freed one.
void check_range(const void* first, std::size_t bytes, const std::string& what);

// Opens what the operation declares, and closes it again.
void open_for(const Operation& operation);
void close_after(const Operation& operation);
// Closes pinned memory that the issued operation touches, and opens what the host has waited for.
void close_pinned(const Operation& operation);
void open_waited_pinned();

void set_memory_limit(std::size_t bytes);
[[nodiscard]] std::size_t memory_of_a_device();
[[nodiscard]] std::size_t memory_used(int device);
// Live allocations, in words.
[[nodiscard]] std::vector<std::string> memory_leaks();
void forget_all_memory();

}  // namespace cuda_on_host

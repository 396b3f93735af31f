// How a test's handle (control.h) reaches the double, which it does not link: by one function that it
// looks up by name.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_on_host {

using VisitLine = void (*)(void* self, const char* line);
using VisitWait = void (*)(void* self, int without, const char* what);

// The functions of control.h.
struct Hooks {
  void (*reset)(int order, std::uint64_t seed);
  void (*fail)(const char* function, int number, int error);
  void (*fail_device)(int device, int number, int error);
  void (*limit_memory)(std::size_t bytes);
  void (*set_devices)(int count);
  long (*calls)(const char* function);  // null: of all
  void (*visit_called)(VisitLine visit, void* self);
  void (*visit_races)(VisitLine visit, void* self);
  void (*visit_leaks)(VisitLine visit, void* self);
  std::uint64_t (*schedule_hash)();
  void (*throw_on_misuse)(bool on);
  void (*host_access)(const void* first, std::size_t bytes, bool writes);
  std::size_t (*remembered_accesses)();
  void (*record_waits)(int device);
  void (*visit_waits)(VisitWait visit, void* self);
  void (*overlook_wait)(int device, int number);
  void (*pass_over_after)(double seconds);
  void (*set_clock)(const char* model);
};

}  // namespace cuda_on_host

extern "C" const cuda_on_host::Hooks* cuda_on_host_hooks();

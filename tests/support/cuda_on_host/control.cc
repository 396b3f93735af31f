#include "tests/support/cuda_on_host/control.h"

#include "tests/support/cuda_on_host/hooks.h"
#include "tests/support/cuda_on_host/lookup.h"

namespace cuda_on_host {
namespace {

const Hooks* hooks() {
  static const Hooks* const found = [] {
    auto* const find = find_in_double<const Hooks*()>("cuda_on_host_hooks");
    return find == nullptr ? nullptr : find();
  }();
  return found;
}

std::vector<std::string> lines_of(void (*visit)(VisitLine, void*)) {
  std::vector<std::string> lines;
  visit([](void* self,
           const char* line) { static_cast<std::vector<std::string>*>(self)->emplace_back(line); },
        &lines);
  return lines;
}

}  // namespace

bool present() {
  return hooks() != nullptr;
}

void reset(Order order, std::uint64_t seed) {
  if (present()) hooks()->reset(static_cast<int>(order), seed);
}
void fail(const std::string& function, int number, int error) {
  if (present()) hooks()->fail(function.c_str(), number, error);
}
void fail_device(int device, int number, int error) {
  if (present()) hooks()->fail_device(device, number, error);
}
void limit_memory(std::size_t bytes) {
  if (present()) hooks()->limit_memory(bytes);
}
void set_devices(int count) {
  if (present()) hooks()->set_devices(count);
}
long calls(const std::string& function) {
  return present() ? hooks()->calls(function.c_str()) : 0;
}
long all_calls() {
  return present() ? hooks()->calls(nullptr) : 0;
}
std::vector<std::string> called_functions() {
  return present() ? lines_of(hooks()->visit_called) : std::vector<std::string>{};
}
std::vector<std::string> races() {
  return present() ? lines_of(hooks()->visit_races) : std::vector<std::string>{};
}
void record_waits(int device) {
  if (present()) hooks()->record_waits(device);
}
std::vector<JudgedWait> judged_waits() {
  std::vector<JudgedWait> waits;
  if (!present()) return waits;
  hooks()->visit_waits(
      [](void* self, int without, const char* what) {
        static_cast<std::vector<JudgedWait>*>(self)->push_back(
            {static_cast<WithoutWait>(without), what});
      },
      &waits);
  return waits;
}
void overlook_wait(int device, int number) {
  if (present()) hooks()->overlook_wait(device, number);
}
void pass_over_after(double seconds) {
  if (present()) hooks()->pass_over_after(seconds);
}
std::uint64_t schedule_hash() {
  return present() ? hooks()->schedule_hash() : 0;
}
std::vector<std::string> leaks() {
  return present() ? lines_of(hooks()->visit_leaks) : std::vector<std::string>{};
}
void throw_on_misuse(bool on) {
  if (present()) hooks()->throw_on_misuse(on);
}
void host_reads(const void* first, std::size_t bytes) {
  if (present()) hooks()->host_access(first, bytes, false);
}
void host_writes(void* first, std::size_t bytes) {
  if (present()) hooks()->host_access(first, bytes, true);
}
void set_clock(const std::string& model) {
  if (present()) hooks()->set_clock(model.c_str());
}
std::size_t remembered_accesses() {
  return present() ? hooks()->remembered_accesses() : 0;
}

}  // namespace cuda_on_host

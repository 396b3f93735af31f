#include "tests/support/cuda_on_host/nccl_control.h"

#include <cstdlib>

#include "tests/support/cuda_on_host/lookup.h"

namespace cuda_on_host::nccl {
namespace {

template <class Function, class... Arguments>
void call(const char* name, Arguments... arguments) {
  if (auto* const function = find_in_double<Function>(name)) function(arguments...);
}

}  // namespace

bool present() {
  return find_in_double<void()>("cuda_on_host_nccl_reset") != nullptr;
}
bool ranks_are_processes() {
  const char* const folder = std::getenv("CUDA_ON_HOST_RANKS");
  return present() && folder != nullptr && *folder != '\0';
}
void reset() {
  call<void()>("cuda_on_host_nccl_reset");
}
void buffer_sends(std::size_t bytes) {
  call<void(std::size_t)>("cuda_on_host_nccl_buffer_sends", bytes);
}
void hide_aborts(bool hides) {
  call<void(int)>("cuda_on_host_nccl_hide_aborts", hides ? 1 : 0);
}
void fail_rank(int rank, int error) {
  call<void(int, int)>("cuda_on_host_nccl_fail_rank", rank, error);
}
int live_communicators() {
  auto* const function = find_in_double<int()>("cuda_on_host_nccl_live");
  return function == nullptr ? 0 : function();
}

}  // namespace cuda_on_host::nccl

#include "tests/support/cuda_on_host/cudnn_control.h"

#include "tests/support/cuda_on_host/lookup.h"

namespace cuda_on_host::cudnn {
namespace {

using Count = int();

Count* find(const char* name) {
  return find_in_double<Count>(name);
}
int call(const char* name) {
  Count* const function = find(name);
  return function == nullptr ? 0 : function();
}

}  // namespace

bool present() {
  return find("cuda_on_host_cudnn_live_handles") != nullptr;
}
int live_handles() {
  return call("cuda_on_host_cudnn_live_handles");
}
int live_descriptors() {
  return call("cuda_on_host_cudnn_live_descriptors");
}

}  // namespace cuda_on_host::cudnn

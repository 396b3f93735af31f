// Tests: tests/cuda/network.
#include "runtime/network/cuda/own_kernels.h"

#include "runtime/device/cuda/status.h"

namespace paceline::runtime::cuda {

void start(const Operation& operation, cudaStream_t stream) {
  std::visit([stream](const auto& body) { check(start_own(body, stream), "compute a layer"); },
             operation);
}

}  // namespace paceline::runtime::cuda

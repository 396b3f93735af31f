// Our own kernels of pools and of the loss. Tests: tests/cuda/network.
#include "runtime/device/cuda/launch.h"
#include "runtime/network/cuda/own_kernels.h"

namespace paceline::runtime::cuda {

cudaError_t start_own(const MaxPoolForward& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}
cudaError_t start_own(const MaxPoolDataGradient& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}
cudaError_t start_own(const AveragePoolForward& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}
cudaError_t start_own(const AveragePoolDataGradient& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}
cudaError_t start_own(const LossForward& body, cudaStream_t stream) {
  return start_phased(stream, body, {body.blocks(), LossForward::threads, body.shared_bytes()});
}
cudaError_t start_own(const LossDataGradient& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}

}  // namespace paceline::runtime::cuda

// Our own kernels of layers that touch each element once. Tests: tests/cuda/network.
#include "runtime/device/cuda/launch.h"
#include "runtime/network/cuda/own_kernels.h"

namespace paceline::runtime::cuda {

cudaError_t start_own(const LoadImages& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}
cudaError_t start_own(const ReluDataGradient& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}
cudaError_t start_own(const Dropout& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}
cudaError_t start_own(const Sum& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}
cudaError_t start_own(const CopyChannels& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}
cudaError_t start_own(const Flatten& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}

}  // namespace paceline::runtime::cuda

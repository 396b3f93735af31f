// Our own kernels of convolutions and of parameters. Tests: tests/cuda/network.
#include "runtime/device/cuda/launch.h"
#include "runtime/network/cuda/own_kernels.h"

namespace paceline::runtime::cuda {

cudaError_t start_own(const ConvolutionForward& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}
cudaError_t start_own(const ConvolutionDataGradient& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}
cudaError_t start_own(const ConvolutionFilterGradient& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}
cudaError_t start_own(const BiasGradient& body, cudaStream_t stream) {
  return start_phased(stream, body, {body.blocks(), BiasGradient::threads, body.shared_bytes()});
}
cudaError_t start_own(const LoadFilters& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}
cudaError_t start_own(const LoadVector& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}
cudaError_t start_own(const StoreFilterGradient& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}
cudaError_t start_own(const StoreNormGradients& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}

}  // namespace paceline::runtime::cuda

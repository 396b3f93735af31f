// Our own kernels of batch norm and LRN. Tests: tests/cuda/network.
#include "runtime/device/cuda/launch.h"
#include "runtime/network/cuda/own_kernels.h"

namespace paceline::runtime::cuda {

cudaError_t start_own(const BatchNormStatistics& body, cudaStream_t stream) {
  return start_phased(stream, body,
                      {body.blocks(), BatchNormStatistics::threads, body.shared_bytes()});
}
cudaError_t start_own(const BatchNormApply& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}
cudaError_t start_own(const BatchNormParameterGradients& body, cudaStream_t stream) {
  return start_phased(stream, body,
                      {body.blocks(), BatchNormParameterGradients::threads, body.shared_bytes()});
}
cudaError_t start_own(const BatchNormDataGradient& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}
cudaError_t start_own(const LrnForward& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}
cudaError_t start_own(const LrnDataGradient& body, cudaStream_t stream) {
  return start_elements(stream, body, body.count());
}

}  // namespace paceline::runtime::cuda

// Our own kernels, and how any operation is started. Private to runtime/network/cuda.
#pragma once

#include <cuda_runtime_api.h>

#include "runtime/network/cuda/operations.h"

namespace paceline::runtime::cuda {

// Starts an operation on a stream. Throws RunError if the device or the
// library refuses it.
void start(const Operation& operation, cudaStream_t stream);

// Each starts the body of its name. They are compiled apart, in four groups.
cudaError_t start_own(const ConvolutionForward& body, cudaStream_t stream);
cudaError_t start_own(const ConvolutionDataGradient& body, cudaStream_t stream);
cudaError_t start_own(const ConvolutionFilterGradient& body, cudaStream_t stream);
cudaError_t start_own(const BiasGradient& body, cudaStream_t stream);
cudaError_t start_own(const LoadFilters& body, cudaStream_t stream);
cudaError_t start_own(const LoadVector& body, cudaStream_t stream);
cudaError_t start_own(const StoreFilterGradient& body, cudaStream_t stream);
cudaError_t start_own(const StoreNormGradients& body, cudaStream_t stream);

cudaError_t start_own(const BatchNormStatistics& body, cudaStream_t stream);
cudaError_t start_own(const BatchNormApply& body, cudaStream_t stream);
cudaError_t start_own(const BatchNormParameterGradients& body, cudaStream_t stream);
cudaError_t start_own(const BatchNormDataGradient& body, cudaStream_t stream);
cudaError_t start_own(const LrnForward& body, cudaStream_t stream);
cudaError_t start_own(const LrnDataGradient& body, cudaStream_t stream);

cudaError_t start_own(const LoadImages& body, cudaStream_t stream);
cudaError_t start_own(const ReluDataGradient& body, cudaStream_t stream);
cudaError_t start_own(const Dropout& body, cudaStream_t stream);
cudaError_t start_own(const Sum& body, cudaStream_t stream);
cudaError_t start_own(const CopyChannels& body, cudaStream_t stream);
cudaError_t start_own(const Flatten& body, cudaStream_t stream);

cudaError_t start_own(const MaxPoolForward& body, cudaStream_t stream);
cudaError_t start_own(const MaxPoolDataGradient& body, cudaStream_t stream);
cudaError_t start_own(const AveragePoolForward& body, cudaStream_t stream);
cudaError_t start_own(const AveragePoolDataGradient& body, cudaStream_t stream);
cudaError_t start_own(const LossForward& body, cudaStream_t stream);
cudaError_t start_own(const LossDataGradient& body, cudaStream_t stream);

}  // namespace paceline::runtime::cuda

// The operation interface of networks on CUDA devices: what a layer asks for, as values. An
// operation names the tensors that it reads and writes, and how it is computed is the business of
// whoever starts it: our own kernels (own_kernels.h), which compute every operation and are the
// reference, or a library that is held against them.
//
// Private to runtime/network/cuda.
#pragma once

#include <variant>
#include <vector>

#include "runtime/network/cuda/bodies/convolution.h"
#include "runtime/network/cuda/bodies/elementwise.h"
#include "runtime/network/cuda/bodies/loss.h"
#include "runtime/network/cuda/bodies/normalization.h"
#include "runtime/network/cuda/bodies/pool.h"

namespace paceline::runtime::cuda {

using Operation =
    std::variant<LoadImages, ConvolutionForward, ConvolutionDataGradient, ConvolutionFilterGradient,
                 BiasGradient, BatchNormStatistics, BatchNormApply, BatchNormParameterGradients,
                 BatchNormDataGradient, LrnForward, LrnDataGradient, ReluForward, ReluDataGradient,
                 Dropout, Sum, CopyChannels, Flatten, MaxPoolForward, MaxPoolDataGradient,
                 AveragePoolForward, AveragePoolDataGradient, LossForward, LossDataGradient,
                 LoadFilters, LoadVector>;
using Operations = std::vector<Operation>;

}  // namespace paceline::runtime::cuda

// The operation interface of networks on CUDA devices: what is started on a stream, as values. An
// operation names the memory that it reads and writes. It is a kernel of our own (own_kernels.h), or
// a step that a library computes (step_library.h).
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
#include "runtime/network/cuda/step_library.h"

namespace paceline::runtime::cuda {

// A step of a library, which has been given its memory.
struct LibraryStep {
  StepLibrary* library = nullptr;
  int step = 0;
};

using Operation =
    std::variant<LoadImages, ConvolutionForward, ConvolutionDataGradient, ConvolutionFilterGradient,
                 BiasGradient, BatchNormStatistics, BatchNormApply, BatchNormParameterGradients,
                 BatchNormDataGradient, LrnForward, LrnDataGradient, Sum, ReluDataGradient, Dropout,
                 CopyChannels, Flatten, MaxPoolForward, MaxPoolDataGradient, AveragePoolForward,
                 AveragePoolDataGradient, LossForward, LossDataGradient, LoadFilters, LoadVector,
                 StoreFilterGradient, StoreNormGradients, LibraryStep>;
using Operations = std::vector<Operation>;

}  // namespace paceline::runtime::cuda

// Starts the kernels of a CUDA device on a stream. What is computed is in runtime/device/kernels.h,
// how in bodies/. The functions return CUDA's status of the call and wait for nothing.
//
// The units behind this header are the only ones that nvcc compiles, so that it includes little. They
// are compiled without contraction of a * b + c (runtime/CMakeLists.txt), for the bits of the CPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "models/base/precision.h"
#include "runtime/device/cast_table.h"
#include "runtime/device/cuda/bodies/cast_tiles.h"
#include "runtime/device/cuda/bodies/copy_tables.h"
#include "runtime/device/cuda/bodies/update_table.h"
#include "runtime/device/parameter_update.h"
#include "runtime/device/working_copies.h"

namespace paceline::runtime::cuda {

using models::NumberType;

// Arrays of `elements` numbers; a Cast between two types, one of which is FP32.
[[nodiscard]] cudaError_t start_cast(cudaStream_t stream, const void* source,
                                     NumberType source_type, void* target, NumberType target_type,
                                     std::uint64_t elements);
// The types are the same, or the target's is FP32.
[[nodiscard]] cudaError_t start_add(cudaStream_t stream, const void* source, NumberType source_type,
                                    void* target, NumberType target_type, std::uint64_t elements);
[[nodiscard]] cudaError_t start_fill(cudaStream_t stream, float* target, float value,
                                     std::uint64_t elements);
[[nodiscard]] cudaError_t start_find_not_finite(cudaStream_t stream, const float* values,
                                                std::uint64_t elements, std::uint32_t* found);
// The target is FP32.
[[nodiscard]] cudaError_t start_unscale(cudaStream_t stream, const void* source,
                                        NumberType source_type, float* target, float factor,
                                        std::uint64_t elements, std::uint32_t* found);
// The tiles are those of the table.
[[nodiscard]] cudaError_t start_cast_many(cudaStream_t stream, const CastTiles& tiles,
                                          const CastTable& table);

// The flat arrays of all parameters, of tables.elements numbers.
struct UpdatedArrays {
  float* weights = nullptr;
  const float* gradients = nullptr;
  float* momentum = nullptr;
  float* mean_square = nullptr;  // with RMSprop
};
// The working copies that an update writes, too: of the host's table, which outlives the kernel, and of
// the device's.
struct UpdatedCopies {
  const WorkingCopies* table = nullptr;  // may be null
  CopyTables on_device = {};
};
// One step: with LARS three kernels, without one.
[[nodiscard]] cudaError_t start_update(cudaStream_t stream, const UpdateTables& tables,
                                       const UpdateRule& rule, const UpdatedArrays& arrays,
                                       const UpdatedCopies& copies = {});

}  // namespace paceline::runtime::cuda

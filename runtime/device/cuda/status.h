// Statuses of the CUDA runtime as errors of ours.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

namespace paceline::runtime::cuda {

// Throws RunError "cannot <operation>: <CUDA's words> (<its name>)" unless the status is success.
// Takes the status back from CUDA's last error where it is not sticky.
void check(cudaError_t status, std::string_view operation);

}  // namespace paceline::runtime::cuda

#include "runtime/device/cuda/status.h"

#include <fmt/format.h>

#include <string>

#include "models/base/error.h"

namespace paceline::runtime::cuda {

void check(cudaError_t status, std::string_view operation) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw RunError(std::string(operation),
                 fmt::format("{} ({})", cudaGetErrorString(status), cudaGetErrorName(status)));
}

}  // namespace paceline::runtime::cuda

// Tests: tests/cuda/network.
#include "runtime/network/cuda/own_kernels.h"

#include <type_traits>

#include "runtime/device/cuda/status.h"

namespace paceline::runtime::cuda {

void start(const Operation& operation, cudaStream_t stream) {
  if (const auto* of_library = std::get_if<LibraryStep>(&operation))
    return of_library->library->start(of_library->step, stream);
  std::visit(
      [stream]<class Body>(const Body& body) {
        if constexpr (!std::is_same_v<Body, LibraryStep>)
          check(start_own(body, stream), "compute a layer");
      },
      operation);
}

}  // namespace paceline::runtime::cuda

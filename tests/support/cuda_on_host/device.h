// Devices of the double: what one may touch of another, and waits for one as a whole.
#pragma once

#include <cuda_runtime_api.h>

namespace cuda_on_host {

// Whether kernels of the device may touch memory of the other.
[[nodiscard]] bool can_access_peer(int device, int other);
void forget_peers();
cudaError_t synchronise_device(int device);

}  // namespace cuda_on_host

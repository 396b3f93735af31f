// A test's handle on the double of libcudnn, beside control.h, which injects faults into its functions
// too: fail("cudnnBackendExecute", 2, CUDNN_STATUS_EXECUTION_FAILED). On the toolkit's library all
// of it does nothing.
#pragma once

namespace cuda_on_host::cudnn {

// Whether the double was loaded, and not the toolkit's library.
[[nodiscard]] bool present();
// Handles and backend descriptors of the whole process that are not destroyed.
[[nodiscard]] int live_handles();
[[nodiscard]] int live_descriptors();

}  // namespace cuda_on_host::cudnn

// Checks of each kind of descriptor when it is finalised. All throw Refusal with the status of
// cuDNN 9.19, tried on it without a device.
#pragma once

#include "tests/support/cuda_on_host/cudnn/descriptor.h"

namespace cuda_on_host::cudnn {

// finalise_operation.cc: tensors, windows, and operations.
void finalise_tensor(Content& content);
void finalise_convolution_window(Content& content);
void finalise_resample_window(Content& content);
void finalise_operation(Content& content);
// The operation as a value.
[[nodiscard]] Node node_of(const Content& operation);

// plans.cc: devices, heuristics, engines, configurations, plans.
void finalise_device(Content& content);
void finalise_heuristics(Content& content);
void finalise_engine(Content& content);
void finalise_configuration(Content& content);
void finalise_plan(Content& content);

}  // namespace cuda_on_host::cudnn

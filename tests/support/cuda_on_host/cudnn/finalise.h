// Checks of each kind of descriptor when it is finalised. All throw Refusal with the status of
// cuDNN 9.19, tried on it without a device.
#pragma once

#include "tests/support/cuda_on_host/cudnn/descriptor.h"

namespace cuda_on_host::cudnn {

using List = std::vector<std::int64_t>;

// The numbers of an attribute, or others where it is not there.
[[nodiscard]] const List& list_of(const Content& content, int name, const List& otherwise);
// Sets an attribute to a number where it is not there.
void put_real(Content& content, int name, double otherwise);
// The tensor of an attribute, which has to be there and finalised.
[[nodiscard]] Tensor tensor_of(const Content& operation, int name, cudnnStatus_t status);

// finalise_operation.cc: tensors, windows, and operations.
void finalise_tensor(Content& content);
void finalise_convolution_window(Content& content);
void finalise_operation(Content& content);
// The operation as a value.
[[nodiscard]] Node node_of(const Content& operation);

// finalise_others.cc.
void finalise_resample_window(const Content& content);
void finalise_pool(const Content& content);
void finalise_pointwise(Content& content);
void finalise_norm(Content& content);
void finalise_norm_backward(const Content& content);

// plans.cc: devices, heuristics, engines, configurations, plans.
void finalise_device(Content& content);
void finalise_heuristics(Content& content);
void finalise_engine(Content& content);
void finalise_configuration(Content& content);
void finalise_plan(Content& content);

}  // namespace cuda_on_host::cudnn

// cuDNN's functions: handles, backend descriptors, errors.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/support/cuda_on_host/cudnn/descriptor.h"
#include "tests/support/cuda_on_host/cudnn/execution.h"
#include "tests/support/cuda_on_host/cudnn/handles.h"
#include "tests/support/cuda_on_host/world.h"

namespace cuda_on_host::cudnn {
namespace {

thread_local std::string last_reason;

std::vector<std::unique_ptr<cudnnContext>>& handles() {
  static auto* const all = new std::vector<std::unique_ptr<cudnnContext>>;
  return *all;
}

// The body of a function: counts the call, applies faults, and keeps the reason of a refusal.
template <class Body>
cudnnStatus_t call(const char* name, Body body) {
  const ApiCall api(name);
  if (api.injected() != 0) {
    last_reason = std::string("the test made ") + name + " fail";
    return static_cast<cudnnStatus_t>(api.injected());
  }
  try {
    body();
    return CUDNN_STATUS_SUCCESS;
  } catch (const Refusal& refusal) {
    note_reason(refusal.why);
    return refusal.status;
  }
}

}  // namespace

cudnnContext& live_handle(cudnnHandle_t handle) {
  require(handle != nullptr, "a null handle");
  const auto at = std::find_if(handles().begin(), handles().end(),
                               [&](const auto& h) { return h.get() == handle; });
  if (at == handles().end()) die("use of a handle that is no cuDNN handle");
  if (handle->destroyed) die("use of a destroyed cuDNN handle");
  return *handle;
}

int architecture_of_current_device() {
  const int architecture = architecture_of(current_device());
  require(architecture > 0, CUDNN_STATUS_NOT_INITIALIZED, "there is no device");
  return architecture;
}

void note_reason(const std::string& why) {
  last_reason = why.empty() ? "" : "Reason: " + why;
}

}  // namespace cuda_on_host::cudnn

using namespace cuda_on_host;         // NOLINT: what follows is cuDNN's
using namespace cuda_on_host::cudnn;  // NOLINT

extern "C" {

size_t cudnnGetVersion() {
  return CUDNN_VERSION;
}
size_t cudnnGetCudartVersion() {
  return CUDART_VERSION;
}
size_t cudnnGetMaxDeviceVersion() {
  return 1210;
}

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int* value) {
  return call("cudnnGetProperty", [&] {
    require(value != nullptr && type >= MAJOR_VERSION && type <= PATCH_LEVEL, "no such property");
    *value = type == MAJOR_VERSION   ? CUDNN_MAJOR
             : type == MINOR_VERSION ? CUDNN_MINOR
                                     : CUDNN_PATCHLEVEL;
  });
}
cudnnStatus_t cudnnGraphVersionCheck() {
  return CUDNN_STATUS_SUCCESS;
}

void cudnnGetLastErrorString(char* message, size_t bytes) {
  if (message == nullptr || bytes == 0) return;
  const size_t taken = std::min(bytes - 1, last_reason.size());
  std::memcpy(message, last_reason.data(), taken);
  message[taken] = '\0';
  last_reason.clear();
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return call("cudnnCreate", [&] {
    require(handle != nullptr, "a null pointer");
    auto made = std::make_unique<cudnnContext>();
    made->device = current_device();
    made->architecture = architecture_of_current_device();
    require(unsafe_call_error() == cudaSuccess, CUDNN_STATUS_INTERNAL_ERROR,
            "a handle is made during a capture");
    *handle = made.get();
    handles().push_back(std::move(made));
  });
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return call("cudnnDestroy", [&] {
    if (handle != nullptr) live_handle(handle).destroyed = true;
  });
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return call("cudnnSetStream", [&] {
    cudnnContext& context = live_handle(handle);
    require(stream == nullptr || device_of(*stream_of(stream)) == context.device,
            CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH, "the stream is of another device");
    context.stream = stream;
  });
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  return call("cudnnGetStream", [&] {
    require(stream != nullptr, "a null pointer");
    *stream = live_handle(handle).stream;
  });
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  return call("cudnnBackendCreateDescriptor", [&] {
    if (descriptor == nullptr) die("cudnnBackendCreateDescriptor of a null pointer");
    const std::string number = std::to_string(static_cast<int>(type));
    require(type >= CUDNN_BACKEND_POINTWISE_DESCRIPTOR &&
                type <= CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR,
            CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
            "there is no descriptor of type " + number);
    if (!is_known(type)) die("the double of cuDNN has no descriptor of type " + number);
    *descriptor = make_descriptor(type);
  });
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return call("cudnnBackendDestroyDescriptor", [&] { destroy_descriptor(descriptor); });
}

// Deprecated: a descriptor is made by its creation.
cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor) {
  return call("cudnnBackendInitialize", [&] { static_cast<void>(live(descriptor)); });
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return call("cudnnBackendFinalize", [&] { finalise(live(descriptor)); });
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* values) {
  return call("cudnnBackendSetAttribute",
              [&] { set_attribute(live(descriptor), name, type, count, values); });
}

cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t most,
                                       int64_t* count, void* values) {
  return call("cudnnBackendGetAttribute",
              [&] { get_attribute(live(descriptor), name, type, most, count, values); });
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  return call("cudnnBackendExecute", [&] {
    require(handle != nullptr && plan != nullptr && pack != nullptr, "a null pointer");
    execute(live_handle(handle), shared(plan), live(pack));
  });
}

// For cudnn_control.h.
int cuda_on_host_cudnn_live_handles();
int cuda_on_host_cudnn_live_descriptors();
int cuda_on_host_cudnn_live_handles() {
  const ApiCall api("cuda_on_host_cudnn_live_handles");
  return static_cast<int>(std::count_if(handles().begin(), handles().end(),
                                        [](const auto& h) { return !h->destroyed; }));
}
int cuda_on_host_cudnn_live_descriptors() {
  const ApiCall api("cuda_on_host_cudnn_live_descriptors");
  return live_descriptors();
}

}  // extern "C"

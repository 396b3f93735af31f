// Devices and errors.
#include <cstring>
#include <set>
#include <thread>

#include "tests/support/cuda_on_host/capture.h"
#include "tests/support/cuda_on_host/device.h"
#include "tests/support/cuda_on_host/kernels.h"
#include "tests/support/cuda_on_host/memory.h"
#include "tests/support/cuda_on_host/state.h"

using namespace cuda_on_host;  // NOLINT: the functions below are CUDA's, in no namespace

namespace {

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

// The errors that the double returns, and those that tests inject.
constexpr ErrorText errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorCudartUnloading, "cudaErrorCudartUnloading", "driver shutting down"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources",
     "too many resources requested for launch"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
     "peer access is already enabled"},
    {cudaErrorPeerAccessNotEnabled, "cudaErrorPeerAccessNotEnabled",
     "peer access has not been enabled"},
    {cudaErrorAssert, "cudaErrorAssert", "device-side assert triggered"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText* text_of(cudaError_t error) {
  for (const ErrorText& entry : errors)
    if (entry.error == error) return &entry;
  return nullptr;
}

std::set<std::pair<int, int>>& peers() {
  static auto* const pairs = new std::set<std::pair<int, int>>;
  return *pairs;
}

bool is_device(int device) {
  return device >= 0 && device < state().devices;
}

// The stated device: an H100 SXM, as cudaGetDeviceProperties describes one.
constexpr int multiprocessors = 132;
constexpr int compute_capability_major = 9;

}  // namespace

namespace cuda_on_host {

bool can_access_peer(int device, int other) {
  return device == other || peers().contains({device, other});
}
void forget_peers() {
  peers().clear();
}

int architecture_of(int device) {
  return is_device(device) ? 10 * compute_capability_major : 0;
}

cudaError_t synchronise_device(int device) {
  std::set<Stream*, ByDeviceAndId> streams;
  for (const auto& [handle, stream] : state().streams)
    if (stream->device == device && stream->tail != nullptr && stream->capture == nullptr)
      streams.insert(stream.get());
  cudaError_t status = cudaSuccess;
  for (Stream* const stream : streams) status = synchronise(stream);
  return status;
}

}  // namespace cuda_on_host

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  return call_about_devices("cudaGetDeviceCount", [&] {
    *count = state().devices;
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
  });
}

cudaError_t cudaSetDevice(int device) {
  return call_about_devices("cudaSetDevice", [&] {
    if (!is_device(device)) return state().devices > 0 ? cudaErrorInvalidDevice : cudaErrorNoDevice;
    this_thread().device = device;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return call_about_devices("cudaGetDevice", [&] {
    if (state().devices == 0) return cudaErrorNoDevice;
    *device = this_thread().device;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [&] {
    for (const auto& [handle, stream] : state().streams)
      if (stream->capture != nullptr && stream->device == this_thread().device)
        return invalidate(*stream->capture, cudaErrorStreamCaptureUnsupported);
    if (const cudaError_t status = forbidden_by_captures(); status != cudaSuccess) return status;
    return synchronise_device(this_thread().device);
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call("cudaDeviceGetStreamPriorityRange", [&] {
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = -5;
    return cudaSuccess;
  });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call("cudaGetDeviceProperties", [&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    *properties = {};
    std::strncpy(properties->name, "NVIDIA H100 80GB HBM3 (double)", sizeof properties->name - 1);
    properties->totalGlobalMem = memory_of_a_device();
    properties->sharedMemPerBlock = shared_bytes_by_default;
    properties->sharedMemPerBlockOptin = most_shared_bytes;
    properties->sharedMemPerMultiprocessor = std::size_t{228} << 10;
    properties->reservedSharedMemPerBlock = 1024;
    properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
    properties->warpSize = 32;
    properties->memPitch = 2147483647;
    properties->maxThreadsPerBlock = most_threads;
    properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
    properties->maxThreadsDim[2] = 64;
    properties->maxGridSize[0] = 2147483647;
    properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
    properties->major = compute_capability_major;
    properties->minor = 0;
    properties->multiProcessorCount = multiprocessors;
    properties->maxThreadsPerMultiProcessor = 2048;
    properties->maxBlocksPerMultiProcessor = 32;
    properties->l2CacheSize = 52428800;
    properties->memoryBusWidth = 5120;
    properties->asyncEngineCount = 3;
    properties->concurrentKernels = 1;
    properties->unifiedAddressing = 1;
    properties->canMapHostMemory = 1;
    properties->streamPrioritiesSupported = 1;
    properties->textureAlignment = 512;
    properties->pciBusID = device + 1;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call("cudaDeviceGetAttribute", [&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    switch (attribute) {
      case cudaDevAttrMaxThreadsPerBlock:
        *value = most_threads;
        break;
      case cudaDevAttrMaxSharedMemoryPerBlock:
        *value = static_cast<int>(shared_bytes_by_default);
        break;
      case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = static_cast<int>(most_shared_bytes);
        break;
      case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        *value = 228 << 10;
        break;
      case cudaDevAttrWarpSize:
        *value = 32;
        break;
      case cudaDevAttrMultiProcessorCount:
        *value = multiprocessors;
        break;
      case cudaDevAttrComputeCapabilityMajor:
        *value = compute_capability_major;
        break;
      case cudaDevAttrComputeCapabilityMinor:
        *value = 0;
        break;
      case cudaDevAttrMaxThreadsPerMultiProcessor:
        *value = 2048;
        break;
      case cudaDevAttrMaxBlocksPerMultiprocessor:
        *value = 32;
        break;
      case cudaDevAttrClockRate:
        *value = 1980000;
        break;
      case cudaDevAttrMemoryClockRate:
        *value = 2619000;
        break;
      case cudaDevAttrGlobalMemoryBusWidth:
        *value = 5120;
        break;
      case cudaDevAttrL2CacheSize:
        *value = 52428800;
        break;
      case cudaDevAttrAsyncEngineCount:
        *value = 3;
        break;
      case cudaDevAttrConcurrentKernels:
        *value = 1;
        break;
      case cudaDevAttrUnifiedAddressing:
        *value = 1;
        break;
      case cudaDevAttrStreamPrioritiesSupported:
        *value = 1;
        break;
      case cudaDevAttrCooperativeLaunch:
        *value = 1;
        break;
      case cudaDevAttrMemoryPoolsSupported:
        *value = 0;
        break;
      default:
        die("the double does not know device attribute " + std::to_string(attribute));
    }
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return call("cudaDeviceGetPCIBusId", [&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", device + 1);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return call("cudaDeviceCanAccessPeer", [&] {
    if (!is_device(device) || !is_device(peer)) return cudaErrorInvalidDevice;
    *can = device != peer ? 1 : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return call("cudaDeviceEnablePeerAccess", [&] {
    const int device = this_thread().device;
    if (!is_device(peer) || peer == device) return cudaErrorInvalidDevice;
    if (flags != 0) return cudaErrorInvalidValue;
    return peers().insert({device, peer}).second ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return call("cudaDeviceDisablePeerAccess", [&] {
    return peers().erase({this_thread().device, peer}) > 0 ? cudaSuccess
                                                           : cudaErrorPeerAccessNotEnabled;
  });
}

cudaError_t cudaGetLastError() {
  const ApiCall api("cudaGetLastError");
  Thread& thread = this_thread();
  const cudaError_t error = thread.last_error;
  thread.last_error = cudaSuccess;
  const auto broken = state().sticky.find(thread.device);
  return error != cudaSuccess || broken == state().sticky.end() ? error : broken->second;
}

cudaError_t cudaPeekAtLastError() {
  const ApiCall api("cudaPeekAtLastError");
  const Thread& thread = this_thread();
  const auto broken = state().sticky.find(thread.device);
  return thread.last_error != cudaSuccess || broken == state().sticky.end() ? thread.last_error
                                                                            : broken->second;
}

const char* cudaGetErrorName(cudaError_t error) {
  const ErrorText* const entry = text_of(error);
  return entry == nullptr ? "unrecognized error code" : entry->name;
}

const char* cudaGetErrorString(cudaError_t error) {
  const ErrorText* const entry = text_of(error);
  return entry == nullptr ? "unrecognized error code" : entry->text;
}

}  // extern "C"

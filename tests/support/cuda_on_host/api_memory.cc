// Memory, copies and fills.
#include <cstring>

#include "tests/support/cuda_on_host/capture.h"
#include "tests/support/cuda_on_host/device.h"
#include "tests/support/cuda_on_host/memory.h"
#include "tests/support/cuda_on_host/state.h"

using namespace cuda_on_host;  // NOLINT: the functions below are CUDA's, in no namespace

namespace {

enum class Place { device, pinned, pageable };

Place place(const void* address) {
  const Allocation* const a = find_allocation(address);
  if (a == nullptr) return Place::pageable;
  return a->kind == MemoryKind::device ? Place::device : Place::pinned;
}

const char* name(Place place) {
  return place == Place::device ? "device" : "host";
}

bool fits(cudaMemcpyKind kind, Place to, Place from) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return to != Place::device && from != Place::device;
    case cudaMemcpyHostToDevice:
      return to == Place::device && from != Place::device;
    case cudaMemcpyDeviceToHost:
      return to != Place::device && from == Place::device;
    case cudaMemcpyDeviceToDevice:
      return to == Place::device && from == Place::device;
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

std::string with_s(std::size_t count, const char* unit) {
  return std::to_string(count) + " " + unit + (count == 1 ? "" : "s");
}

std::byte* bytes_of(void* p) {
  return static_cast<std::byte*>(p);
}
const std::byte* bytes_of(const void* p) {
  return static_cast<const std::byte*>(p);
}

// A copy in a stream, under the rules of "API synchronization behavior" in the runtime's manual:
// a pageable source is read by the call; into pageable memory, and between two places of the host,
// the call returns when the copy is done; all other copies by an ...Async function only start. The
// functions without Async wait besides for copies between device and pinned memory, and only for
// these: a copy from pageable memory is then staged, and may not have arrived.
cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, Stream* stream,
                 bool waits) {
  if (bytes == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  check_range(from, bytes, "a copy reads");
  check_range(to, bytes, "a copy writes");
  const Place source = place(from);
  const Place target = place(to);
  if (!fits(kind, target, source)) return cudaErrorInvalidValue;
  if (const cudaError_t status = forbidden_in_legacy(*stream); status != cudaSuccess) return status;
  const bool between_hosts = source != Place::device && target != Place::device;
  const bool returns_when_done = target == Place::pageable || between_hosts ||
                                 (waits && !(source == Place::pageable) &&
                                  !(source == Place::device && target == Place::device));
  if (waits)
    if (const cudaError_t status = forbidden_by_captures(); status != cudaSuccess) return status;
  if (stream->capture != nullptr && (source == Place::pageable || returns_when_done))
    return invalidate(*stream->capture, cudaErrorStreamCaptureUnsupported);
  std::shared_ptr<std::vector<std::byte>> staged;
  if (source == Place::pageable && !between_hosts)
    staged = std::make_shared<std::vector<std::byte>>(bytes_of(from), bytes_of(from) + bytes);
  const OperationPointer operation = enqueue(stream, [=] {
    auto made = std::make_shared<Operation>();
    made->what = "copy of " + with_s(bytes, "byte");
    made->is_work = true;
    made->timed_as = std::string("copy ") + name(source) + " to " + name(target);
    made->timed_bytes = static_cast<double>(bytes);
    made->run = [=] { std::memmove(to, staged ? staged->data() : from, bytes); };
    if (source != Place::pageable) made->accesses.push_back({bytes_of(from), bytes, false});
    if (target != Place::pageable) made->accesses.push_back({bytes_of(to), bytes, true});
    return made;
  });
  return returns_when_done && operation != nullptr ? synchronise(stream) : cudaSuccess;
}

cudaError_t fill(void* to, int value, std::size_t bytes, Stream* stream) {
  if (bytes == 0) return cudaSuccess;
  check_range(to, bytes, "a fill writes");
  if (place(to) == Place::pageable) return cudaErrorInvalidValue;
  if (const cudaError_t status = forbidden_in_legacy(*stream); status != cudaSuccess) return status;
  enqueue(stream, [=] {
    auto made = std::make_shared<Operation>();
    made->what = "fill of " + with_s(bytes, "byte");
    made->is_work = true;
    made->run = [=] { std::memset(to, value, bytes); };
    made->accesses.push_back({bytes_of(to), bytes, true});
    return made;
  });
  return cudaSuccess;
}

cudaError_t allocate_host(void** memory, std::size_t bytes, unsigned flags) {
  if (state().devices == 0) return cudaErrorNoDevice;
  if (const cudaError_t status = forbidden_by_captures(); status != cudaSuccess) return status;
  if (memory == nullptr) return cudaErrorInvalidValue;
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  *memory = allocate(MemoryKind::pinned, this_thread().device, bytes, flags);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

// Work that is under way ends first, as far as is known of real libraries; the manual does not promise
// it, so that it orders nothing here.
void finish_device(int device) {
  const auto streams = state().busy;
  for (Stream* const stream : streams) {
    if (stream->device != device) continue;
    const OperationPointer last = stream->queue.empty() ? nullptr : stream->queue.back();
    if (last == nullptr) continue;
    wait([&] { return last->done; }, [&] { return std::vector<Operation*>{last.get()}; },
         "freeing memory");
  }
}

cudaError_t free_memory(void* memory, MemoryKind kind, const char* name) {
  if (memory == nullptr) return cudaSuccess;
  if (const cudaError_t status = forbidden_by_captures(); status != cudaSuccess) return status;
  Allocation* const a = find_allocation(memory);
  if (a == nullptr || a->first != memory || a->kind != kind || a->freed)
    die(std::string(name) + " of " + place_of(memory));
  finish_device(a->device);
  release(*a);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return call("cudaMalloc", [&] {
    if (state().devices == 0) return cudaErrorNoDevice;
    if (const cudaError_t status = forbidden_by_captures(); status != cudaSuccess) return status;
    if (memory == nullptr) return cudaErrorInvalidValue;
    *memory = nullptr;
    if (bytes == 0) return cudaSuccess;
    *memory = allocate(MemoryKind::device, this_thread().device, bytes, 0);
    return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
  });
}

cudaError_t cudaFree(void* memory) {
  return call_that_releases("cudaFree",
                            [&] { return free_memory(memory, MemoryKind::device, "cudaFree"); });
}

cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  return call("cudaMallocHost", [&] { return allocate_host(memory, bytes, cudaHostAllocDefault); });
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned flags) {
  return call("cudaHostAlloc", [&] { return allocate_host(memory, bytes, flags); });
}

cudaError_t cudaFreeHost(void* memory) {
  return call_that_releases(
      "cudaFreeHost", [&] { return free_memory(memory, MemoryKind::pinned, "cudaFreeHost"); });
}

cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned flags) {
  return call("cudaHostRegister", [&] {
    if (const cudaError_t status = forbidden_by_captures(); status != cudaSuccess) return status;
    if (memory == nullptr || bytes == 0) return cudaErrorInvalidValue;
    const auto* const last = bytes_of(memory) + bytes - 1;
    if (find_allocation(memory) != nullptr || find_allocation(last) != nullptr)
      return cudaErrorHostMemoryAlreadyRegistered;
    register_memory(memory, this_thread().device, bytes, flags);
    return cudaSuccess;
  });
}

cudaError_t cudaHostUnregister(void* memory) {
  return call_that_releases("cudaHostUnregister", [&] {
    Allocation* const a = find_allocation(memory);
    if (a == nullptr || a->first != memory || a->kind != MemoryKind::registered)
      return cudaErrorHostMemoryNotRegistered;
    finish_device(a->device);
    release(*a);
    return cudaSuccess;
  });
}

cudaError_t cudaHostGetDevicePointer(void** on_device, void* on_host, unsigned flags) {
  return call("cudaHostGetDevicePointer", [&] {
    if (flags != 0 || place(on_host) != Place::pinned) return cudaErrorInvalidValue;
    *on_device = on_host;
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  return call("cudaPointerGetAttributes", [&] {
    *attributes = {};
    const Allocation* const a = find_allocation(address);
    attributes->type = cudaMemoryTypeUnregistered;
    attributes->hostPointer = const_cast<void*>(address);
    if (a == nullptr) return cudaSuccess;
    if (a->freed) return cudaErrorInvalidValue;
    attributes->device = a->device;
    attributes->devicePointer = const_cast<void*>(address);
    attributes->type = a->kind == MemoryKind::device ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
    if (a->kind == MemoryKind::device) attributes->hostPointer = nullptr;
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return call("cudaMemGetInfo", [&] {
    *total_bytes = memory_of_a_device();
    *free_bytes = *total_bytes - memory_used(this_thread().device);
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return call("cudaMemcpyAsync",
              [&] { return copy(to, from, bytes, kind, stream_of(stream), false); });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return call("cudaMemcpy",
              [&] { return copy(to, from, bytes, kind, stream_of(cudaStreamLegacy), true); });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                size_t bytes, cudaStream_t stream) {
  return call("cudaMemcpyPeerAsync", [&] {
    const Allocation* const target = find_allocation(to);
    const Allocation* const source = find_allocation(from);
    if (target == nullptr || target->kind != MemoryKind::device || target->device != to_device ||
        source == nullptr || source->kind != MemoryKind::device || source->device != from_device)
      return cudaErrorInvalidValue;
    return copy(to, from, bytes, cudaMemcpyDeviceToDevice, stream_of(stream), false);
  });
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return call("cudaMemset", [&] {
    if (const cudaError_t status = forbidden_by_captures(); status != cudaSuccess) return status;
    return fill(to, value, bytes, stream_of(cudaStreamLegacy));
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return call("cudaMemsetAsync", [&] { return fill(to, value, bytes, stream_of(stream)); });
}

}  // extern "C"

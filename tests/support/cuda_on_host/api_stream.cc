// Streams and events.
#include <algorithm>

#include "tests/support/cuda_on_host/capture.h"
#include "tests/support/cuda_on_host/happens_before.h"
#include "tests/support/cuda_on_host/memory.h"
#include "tests/support/cuda_on_host/state.h"
#include "tests/support/cuda_on_host/trace.h"

using namespace cuda_on_host;  // NOLINT: the functions below are CUDA's, in no namespace

namespace {

cudaError_t create_stream(cudaStream_t* stream, unsigned flags, int priority) {
  if (stream == nullptr || (flags & ~unsigned{cudaStreamNonBlocking}) != 0)
    return cudaErrorInvalidValue;
  if (state().devices == 0) return cudaErrorNoDevice;
  const auto kind =
      flags == cudaStreamNonBlocking ? Stream::Kind::non_blocking : Stream::Kind::blocking;
  *stream = reinterpret_cast<cudaStream_t>(
      make_stream(this_thread().device, kind, std::clamp(priority, -5, 0)));
  return cudaSuccess;
}

cudaError_t create_event(cudaEvent_t* event, unsigned flags) {
  constexpr unsigned known = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
  if (event == nullptr || (flags & ~known) != 0) return cudaErrorInvalidValue;
  if (state().devices == 0) return cudaErrorNoDevice;
  auto made = std::make_unique<Event>();
  made->device = this_thread().device;
  made->has_time = (flags & cudaEventDisableTiming) == 0;
  *event = reinterpret_cast<cudaEvent_t>(made.get());
  const void* const handle = made.get();
  state().events.emplace(handle, std::move(made));
  return cudaSuccess;
}

cudaError_t record(Event& event, Stream* stream) {
  if (event.device != stream->device) return cudaErrorInvalidResourceHandle;
  if (const cudaError_t status = forbidden_in_legacy(*stream); status != cudaSuccess) return status;
  if (stream->capture != nullptr) {
    event.capture = stream->capture;
    event.capture_ends = stream->capture_ends;
    return cudaSuccess;
  }
  event.capture = nullptr;
  event.time_ms = std::make_shared<double>(0);
  event.record = enqueue(stream, [time_ms = event.time_ms] {
    auto made = std::make_shared<Operation>();
    made->what = "record of an event";
    made->is_record = true;
    made->run = [time_ms] { *time_ms = state().time_ms; };
    return made;
  });
  return cudaSuccess;
}

// An event that was last recorded in a capture tells nothing, and asking ends the capture.
cudaError_t check_not_captured(const Event& event) {
  if (event.capture == nullptr) return cudaSuccess;
  return event.capture->ended ? cudaErrorCapturedEvent
                              : invalidate(*event.capture, cudaErrorCapturedEvent);
}

cudaError_t sticky_of(int device) {
  const auto broken = state().sticky.find(device);
  return broken == state().sticky.end() ? cudaSuccess : broken->second;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return call("cudaStreamCreate", [&] { return create_stream(stream, cudaStreamDefault, 0); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return call("cudaStreamCreateWithFlags", [&] { return create_stream(stream, flags, 0); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return call("cudaStreamCreateWithPriority",
              [&] { return create_stream(stream, flags, priority); });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call_that_releases("cudaStreamDestroy", [&] {
    if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread)
      return cudaErrorInvalidResourceHandle;
    Stream* const destroyed = stream_of(stream);
    if (destroyed->capture != nullptr) die("a stream is destroyed while it is captured");
    destroyed->destroyed = true;  // its work goes on
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call("cudaStreamSynchronize", [&] {
    Stream* const waited = stream_of(stream);
    if (waited->capture != nullptr)
      return invalidate(*waited->capture, cudaErrorStreamCaptureUnsupported);
    if (const cudaError_t s = forbidden_in_legacy(*waited); s != cudaSuccess) return s;
    if (const cudaError_t s = forbidden_by_captures(); s != cudaSuccess) return s;
    return synchronise(waited);
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call("cudaStreamQuery", [&] {
    Stream* const asked = stream_of(stream);
    if (asked->capture != nullptr)
      return invalidate(*asked->capture, cudaErrorStreamCaptureUnsupported);
    if (const cudaError_t s = forbidden_in_legacy(*asked); s != cudaSuccess) return s;
    if (const cudaError_t s = forbidden_by_captures(); s != cudaSuccess) return s;
    step_by_chance(asked->tail.get());
    if (!asked->queue.empty()) return cudaErrorNotReady;
    return synchronise(asked);
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return call("cudaStreamGetPriority", [&] {
    *priority = stream_of(stream)->priority;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return call("cudaStreamGetFlags", [&] {
    *flags = stream_of(stream)->kind == Stream::Kind::non_blocking ? cudaStreamNonBlocking
                                                                   : cudaStreamDefault;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return call("cudaStreamGetDevice", [&] {
    *device = stream_of(stream)->device;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return call("cudaStreamGetId", [&] {
    const Stream* const asked = stream_of(stream);
    *id = static_cast<unsigned long long>(asked->device) << 32U |
          static_cast<unsigned long long>(asked->id);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return call("cudaStreamWaitEvent", [&] {
    if (flags != cudaEventWaitDefault) return cudaErrorInvalidValue;
    Event* const awaited = event_of(event);
    Stream* const waits = stream_of(stream);
    if (awaited->capture != nullptr) return join_capture(waits, *awaited);
    if (awaited->record == nullptr) return cudaSuccess;
    if (waits->capture != nullptr)
      return invalidate(*waits->capture, cudaErrorStreamCaptureIsolation);
    if (const cudaError_t s = forbidden_in_legacy(*waits); s != cudaSuccess) return s;
    enqueue(waits, [awaited, waits] {
      auto made = std::make_shared<Operation>();
      made->what = "wait for an event";
      made->after.push_back(awaited->record);
      made->wait = count_wait(waits->device);
      return made;
    });
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return call("cudaLaunchHostFunc", [&] {
    Stream* const runs = stream_of(stream);
    if (const cudaError_t s = forbidden_in_legacy(*runs); s != cudaSuccess) return s;
    enqueue(runs, [function, data] {
      auto made = std::make_shared<Operation>();
      made->what = "host function";
      made->ready = [] { return true; };  // touches what it likes, and may not say so
      made->run = [function, data] {
        this_thread().in_host_function = true;
        function(data);
        this_thread().in_host_function = false;
      };
      return made;
    });
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return call("cudaEventCreate", [&] { return create_event(event, cudaEventDefault); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call("cudaEventCreateWithFlags", [&] { return create_event(event, flags); });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call_that_releases("cudaEventDestroy", [&] {
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    Event* const destroyed = event_of(event);
    destroyed->destroyed = true;
    destroyed->record = nullptr;
    destroyed->capture = nullptr;
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord", [&] { return record(*event_of(event), stream_of(stream)); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return call("cudaEventRecordWithFlags", [&] {
    if (flags != cudaEventRecordDefault) return cudaErrorInvalidValue;
    return record(*event_of(event), stream_of(stream));
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call("cudaEventQuery", [&] {
    Event* const asked = event_of(event);
    if (const cudaError_t s = check_not_captured(*asked); s != cudaSuccess) return s;
    if (const cudaError_t s = forbidden_by_captures(); s != cudaSuccess) return s;
    if (asked->record == nullptr) return cudaSuccess;
    step_by_chance(asked->record.get());
    if (!asked->record->done) return cudaErrorNotReady;
    synchronise(asked->record, "cudaEventQuery");
    return sticky_of(asked->device);
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call("cudaEventSynchronize", [&] {
    Event* const waited = event_of(event);
    if (const cudaError_t s = check_not_captured(*waited); s != cudaSuccess) return s;
    if (const cudaError_t s = forbidden_by_captures(); s != cudaSuccess) return s;
    const OperationPointer record = waited->record;
    if (record == nullptr) return cudaSuccess;
    synchronise(record, "cudaEventSynchronize");
    return sticky_of(waited->device);
  });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return call("cudaEventElapsedTime", [&] {
    const Event* const first = event_of(start);
    const Event* const last = event_of(end);
    for (const Event* const event : {first, last}) {
      if (const cudaError_t s = check_not_captured(*event); s != cudaSuccess) return s;
      if (!event->has_time || event->record == nullptr) return cudaErrorInvalidResourceHandle;
    }
    if (first->device != last->device) return cudaErrorInvalidResourceHandle;
    if (!first->record->done || !last->record->done) return cudaErrorNotReady;
    *ms = static_cast<float>(*last->time_ms - *first->time_ms);
    return cudaSuccess;
  });
}

}  // extern "C"

// Captures and graphs.
#include "tests/support/cuda_on_host/capture.h"
#include "tests/support/cuda_on_host/state.h"

using namespace cuda_on_host;  // NOLINT: the functions below are CUDA's, in no namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", [&] { return begin_capture(stream_of(stream), mode); });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call("cudaStreamEndCapture", [&] { return end_capture(stream_of(stream), graph); });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return call("cudaStreamIsCapturing", [&] {
    const Stream* const asked = stream_of(stream);
    if (const cudaError_t s = forbidden_in_legacy(*asked); s != cudaSuccess) return s;
    *status = asked->capture == nullptr ? cudaStreamCaptureStatusNone
              : asked->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                        : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call("cudaThreadExchangeStreamCaptureMode", [&] {
    std::swap(*mode, this_thread().capture_mode);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return call("cudaGraphCreate", [&] {
    if (flags != 0) return cudaErrorInvalidValue;
    *graph = make_graph({});
    return cudaSuccess;
  });
}

// Counts only: the double's nodes have no handles.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return call("cudaGraphGetNodes", [&] {
    if (nodes != nullptr) die("the double counts a graph's nodes and does not show them");
    *count = graph_of(graph)->nodes.size();
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long flags) {
  return call("cudaGraphInstantiate", [&] {
    if (flags != 0) return cudaErrorNotSupported;
    *executable = instantiate(*graph_of(graph));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags) {
  return call("cudaGraphInstantiateWithFlags", [&] {
    if (flags != 0) return cudaErrorNotSupported;
    *executable = instantiate(*graph_of(graph));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
  return call("cudaGraphUpload", [&] {
    static_cast<void>(executable_of(executable));
    static_cast<void>(stream_of(stream));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return call("cudaGraphLaunch", [&] {
    ExecutableGraph* const graph = executable_of(executable);
    Stream* const runs = stream_of(stream);
    if (runs->capture != nullptr)  // a graph in a graph
      return invalidate(*runs->capture, cudaErrorStreamCaptureUnsupported);
    if (const cudaError_t s = forbidden_in_legacy(*runs); s != cudaSuccess) return s;
    launch(*graph, runs);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call_that_releases("cudaGraphDestroy", [&] {
    Graph* const destroyed = graph_of(graph);
    destroyed->destroyed = true;
    destroyed->nodes.clear();
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return call_that_releases("cudaGraphExecDestroy", [&] {
    ExecutableGraph* const destroyed = executable_of(executable);
    destroyed->destroyed = true;
    destroyed->nodes.clear();
    return cudaSuccess;
  });
}

}  // extern "C"

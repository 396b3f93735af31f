// Captures of streams, and the graphs that come of them.
//
// A graph's nodes run in lanes: a node follows one of its predecessors in the same lane where it can,
// so that a graph that was captured from k streams has about k lanes. A lane orders nothing that an
// edge does not. Launches of the same executable graph run one after the other.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/cuda_on_host/state.h"

namespace cuda_on_host {

struct GraphNode {
  MakeOperation make;  // empty for a node that only joins others
  std::vector<std::size_t> after;
};

struct Graph {
  std::vector<GraphNode> nodes;
  bool destroyed = false;
};

struct Capture {
  std::vector<GraphNode> nodes;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  Stream* origin = nullptr;
  std::thread::id thread;
  std::vector<Stream*> streams;  // that take part
  bool invalid = false;
  bool ended = false;
};

struct ExecutableGraph {
  std::vector<GraphNode> nodes;
  std::vector<std::size_t> lane_of;  // of each node
  std::vector<Stream*> lanes;        // made by the first launch on `device`
  int device = 0;
  OperationPointer last;  // the end of the last launch
  bool destroyed = false;
};

// Adds a node behind the stream's ends.
void capture_operation(Stream* stream, const MakeOperation& make);
// The stream comes to take part in a capture, by an event of it. Returns 902 for one of another capture.
cudaError_t join_capture(Stream* stream, const Event& event);
// A forbidden call ends the capture with 901; returns `error`.
cudaError_t invalidate(Capture& capture, cudaError_t error);

// What a call that is unsafe during captures returns: 900, and the captures that forbid it are invalid,
// or success. Captures forbid it by their mode, and the calling thread by its own.
cudaError_t forbidden_by_captures();
// What work in the legacy stream returns: 906 while a blocking stream of the device is captured.
cudaError_t forbidden_in_legacy(const Stream& stream);

cudaError_t begin_capture(Stream* stream, cudaStreamCaptureMode mode);
cudaError_t end_capture(Stream* stream, cudaGraph_t* graph);
[[nodiscard]] Graph* graph_of(cudaGraph_t handle);
[[nodiscard]] ExecutableGraph* executable_of(cudaGraphExec_t handle);
cudaGraph_t make_graph(std::vector<GraphNode> nodes);
cudaGraphExec_t instantiate(const Graph& graph);
void launch(ExecutableGraph& graph, Stream* stream);
[[nodiscard]] std::vector<std::string> graph_leaks();
void forget_graphs();

}  // namespace cuda_on_host

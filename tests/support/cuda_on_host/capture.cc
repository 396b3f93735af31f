#include "tests/support/cuda_on_host/capture.h"

#include <algorithm>
#include <unordered_map>

namespace cuda_on_host {
namespace {

struct Table {
  std::unordered_map<const void*, std::unique_ptr<Graph>> graphs;
  std::unordered_map<const void*, std::unique_ptr<ExecutableGraph>> executables;
};

Table& table() {
  static Table* const one = new Table;
  return *one;
}

// Gives every node a lane in which only nodes stand that it comes after.
void assign_lanes(ExecutableGraph& graph) {
  std::vector<std::size_t> last_of_lane;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    std::size_t lane = last_of_lane.size();
    for (const std::size_t earlier : graph.nodes[i].after)
      if (last_of_lane[graph.lane_of[earlier]] == earlier) lane = graph.lane_of[earlier];
    if (lane == last_of_lane.size()) last_of_lane.push_back(i);
    last_of_lane[lane] = i;
    graph.lane_of.push_back(lane);
  }
  graph.lanes.resize(last_of_lane.size(), nullptr);
}

OperationPointer marker(const char* what) {
  auto operation = std::make_shared<Operation>();
  operation->what = what;
  return operation;
}

}  // namespace

void capture_operation(Stream* stream, const MakeOperation& make) {
  Capture& capture = *stream->capture;
  capture.nodes.push_back({make, stream->capture_ends});
  stream->capture_ends = {capture.nodes.size() - 1};
}

cudaError_t join_capture(Stream* stream, const Event& event) {
  if (event.capture->ended) return cudaErrorCapturedEvent;
  if (stream->kind == Stream::Kind::legacy)
    return invalidate(*event.capture, cudaErrorStreamCaptureImplicit);
  if (stream->capture != nullptr && stream->capture != event.capture) {
    invalidate(*stream->capture, cudaErrorStreamCaptureMerge);
    return invalidate(*event.capture, cudaErrorStreamCaptureMerge);
  }
  if (stream->capture == nullptr) {
    stream->capture = event.capture;
    stream->capture_ends.clear();
    event.capture->streams.push_back(stream);
  }
  for (const std::size_t node : event.capture_ends)
    if (std::find(stream->capture_ends.begin(), stream->capture_ends.end(), node) ==
        stream->capture_ends.end())
      stream->capture_ends.push_back(node);
  return cudaSuccess;
}

cudaError_t invalidate(Capture& capture, cudaError_t error) {
  capture.invalid = true;
  return error;
}

cudaError_t forbidden_by_captures() {
  const Thread& me = this_thread();
  if (me.capture_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  cudaError_t status = cudaSuccess;
  for (const auto& [handle, stream] : state().streams) {
    if (stream->capture == nullptr || stream->capture->origin != stream.get()) continue;
    Capture& capture = *stream->capture;
    const bool ours = capture.thread == std::this_thread::get_id();
    const bool forbids = (capture.mode == cudaStreamCaptureModeGlobal &&
                          (ours || me.capture_mode == cudaStreamCaptureModeGlobal)) ||
                         (capture.mode == cudaStreamCaptureModeThreadLocal && ours);
    if (forbids) status = invalidate(capture, cudaErrorStreamCaptureUnsupported);
  }
  return status;
}

cudaError_t forbidden_in_legacy(const Stream& stream) {
  if (stream.kind != Stream::Kind::legacy) return cudaSuccess;
  cudaError_t status = cudaSuccess;
  for (const auto& [handle, other] : state().streams)
    if (other->capture != nullptr && other->kind == Stream::Kind::blocking &&
        other->device == stream.device)
      status = invalidate(*other->capture, cudaErrorStreamCaptureImplicit);
  return status;
}

cudaError_t begin_capture(Stream* stream, cudaStreamCaptureMode mode) {
  if (stream->kind == Stream::Kind::legacy) return cudaErrorStreamCaptureUnsupported;
  if (stream->capture != nullptr) return cudaErrorIllegalState;
  auto capture = std::make_shared<Capture>();
  capture->mode = mode;
  capture->origin = stream;
  capture->thread = std::this_thread::get_id();
  capture->streams = {stream};
  stream->capture = std::move(capture);
  stream->capture_ends.clear();
  return cudaSuccess;
}

namespace {

// Its streams capture no more.
void leave(Capture& capture) {
  for (Stream* const stream : capture.streams) {
    stream->capture = nullptr;
    stream->capture_ends.clear();
  }
  capture.ended = true;
}

}  // namespace

cudaError_t end_capture(Stream* stream, cudaGraph_t* graph) {
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return cudaErrorIllegalState;
  if (capture->origin != stream) return invalidate(*capture, cudaErrorStreamCaptureUnmatched);
  // CUDA 13.0 ends the capture all the same.
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id()) {
    leave(*capture);
    return cudaErrorStreamCaptureWrongThread;
  }
  // Every node has to come before the end of the stream that began.
  std::vector<bool> reached(capture->nodes.size());
  std::vector<std::size_t> to_do = stream->capture_ends;
  while (!to_do.empty()) {
    const std::size_t node = to_do.back();
    to_do.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    const auto& after = capture->nodes[node].after;
    to_do.insert(to_do.end(), after.begin(), after.end());
  }
  const auto is_joined = [&](const Stream* other) {
    return std::all_of(other->capture_ends.begin(), other->capture_ends.end(),
                       [&](std::size_t node) { return reached[node]; });
  };
  const bool joined = std::all_of(capture->streams.begin(), capture->streams.end(), is_joined) &&
                      std::find(reached.begin(), reached.end(), false) == reached.end();
  leave(*capture);
  if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (!joined) return cudaErrorStreamCaptureUnjoined;
  *graph = make_graph(std::move(capture->nodes));
  return cudaSuccess;
}

Graph* graph_of(cudaGraph_t handle) {
  const auto at = table().graphs.find(handle);
  if (at == table().graphs.end())
    die("use of a handle that is no graph, or of a test before reset()");
  if (at->second->destroyed) die("use of a destroyed graph");
  return at->second.get();
}

ExecutableGraph* executable_of(cudaGraphExec_t handle) {
  const auto at = table().executables.find(handle);
  if (at == table().executables.end())
    die("use of a handle that is no executable graph, or of a test before reset()");
  if (at->second->destroyed) die("use of a destroyed executable graph");
  return at->second.get();
}

cudaGraph_t make_graph(std::vector<GraphNode> nodes) {
  auto graph = std::make_unique<Graph>();
  graph->nodes = std::move(nodes);
  Graph* const kept = graph.get();
  table().graphs.emplace(kept, std::move(graph));
  return reinterpret_cast<cudaGraph_t>(kept);
}

cudaGraphExec_t instantiate(const Graph& graph) {
  auto executable = std::make_unique<ExecutableGraph>();
  executable->nodes = graph.nodes;
  assign_lanes(*executable);
  ExecutableGraph* const kept = executable.get();
  table().executables.emplace(kept, std::move(executable));
  return reinterpret_cast<cudaGraphExec_t>(kept);
}

void launch(ExecutableGraph& graph, Stream* stream) {
  if (graph.device != stream->device) std::fill(graph.lanes.begin(), graph.lanes.end(), nullptr);
  graph.device = stream->device;
  const OperationPointer start = enqueue(stream, [&] {
    OperationPointer operation = marker("start of a graph");
    if (graph.last != nullptr) operation->after.push_back(graph.last);
    return operation;
  });
  std::vector<OperationPointer> operations;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    Stream*& lane = graph.lanes[graph.lane_of[i]];
    if (lane == nullptr) lane = make_stream(stream->device, Stream::Kind::lane, 0);
    OperationPointer operation = node.make ? node.make() : marker("join in a graph");
    operation->after.push_back(start);
    for (const std::size_t earlier : node.after) operation->after.push_back(operations[earlier]);
    operations.push_back(issue(lane, std::move(operation)));
  }
  graph.last = enqueue(stream, [&] {
    OperationPointer operation = marker("end of a graph");
    operation->after = operations;
    return operation;
  });
}

std::vector<std::string> graph_leaks() {
  std::vector<std::string> leaks;
  for (const auto& [handle, graph] : table().graphs)
    if (!graph->destroyed)
      leaks.push_back("a graph of " + std::to_string(graph->nodes.size()) + " nodes");
  for (const auto& [handle, graph] : table().executables)
    if (!graph->destroyed)
      leaks.push_back("an executable graph of " + std::to_string(graph->nodes.size()) + " nodes");
  std::sort(leaks.begin(), leaks.end());
  return leaks;
}

void forget_graphs() {
  table() = Table{};
}

}  // namespace cuda_on_host

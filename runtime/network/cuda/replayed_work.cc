// Tests: tests/cuda/network/replay_test.cc.
#include "runtime/network/cuda/replayed_work.h"

#include <utility>

#include "models/base/error.h"

namespace paceline::runtime::cuda {
namespace {

// Other threads go on as they like: they wait for events, and allocate.
constexpr cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal;

// The stream takes work again when this ends, however it ends.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    check(cudaStreamBeginCapture(stream, mode), "begin to capture a CUDA graph");
  }
  ~Capture() {
    if (stream_ == nullptr) return;
    cudaGraph_t graph = nullptr;
    static_cast<void>(cudaStreamEndCapture(stream_, &graph));
    if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  [[nodiscard]] GraphExecHandle end() {
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream_, &graph), "capture a CUDA graph");
    stream_ = nullptr;
    const GraphHandle owned(graph);
    cudaGraphExec_t executable = nullptr;
    check(cudaGraphInstantiate(&executable, graph, 0), "make a CUDA graph ready");
    return GraphExecHandle(executable);
  }

 private:
  cudaStream_t stream_;
};

GraphExecHandle captured(cudaStream_t stream, const std::function<void()>& issue) {
  Capture capture(stream);
  issue();
  return capture.end();
}

}  // namespace

std::string Replaying::take_reason() {
  return std::exchange(reason_, {});
}

void Replaying::end(const std::string& reason) {
  is_on_ = false;
  reason_ = reason;
}

void ReplayedWork::put(cudaStream_t stream, Replaying& replaying, const void* memory,
                       const std::function<void()>& issue) {
  const auto is_captured = [&] { return graphs_.contains(memory); };
  if (replaying.is_on() && was_started_ && !is_captured()) {
    try {
      graphs_[memory] = captured(stream, issue);
    } catch (const RunError& error) {
      graphs_.erase(memory);
      static_cast<void>(cudaGetLastError());  // if the device has failed, the next call says so
      replaying.end(error.what());
    }
  }
  if (!replaying.is_on() || !is_captured()) {
    issue();
    was_started_ = true;
    return;
  }
  check(cudaGraphLaunch(graphs_[memory].get(), stream), "launch a CUDA graph");
}

}  // namespace paceline::runtime::cuda

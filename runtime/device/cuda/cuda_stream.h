// Streams of a CUDA device, and what tokens of CUDA's work have in common: an event.
//
// Private to units that know CUDA: the device, and executors on its streams (NCCL's).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "runtime/device/cuda/event_points.h"
#include "runtime/device/cuda/handle.h"
#include "runtime/device/device.h"

namespace paceline::runtime::cuda {

class DeviceTables;

// A source of tokens whose points are events of one CUDA device: a stream, or an executor that runs
// on streams of its own. A CudaStream of the same device waits for them without the host.
class CudaTokenSource : public Token::Source {
 public:
  // The device's number.
  [[nodiscard]] virtual int device_index() const = 0;
  // Makes what is put into the stream from now on wait for the point. Does not block. Any thread
  // may call it. Throws RunError if the work is known to have failed.
  virtual void make_wait(cudaStream_t stream, std::uint64_t point) = 0;
};

class CudaStream final : public Stream, public CudaTokenSource {
 public:
  // The tables outlive the stream.
  CudaStream(int device_index, DeviceTables& tables);
  // Waits for what was started, for device_patience at most. An error is left to the device's next
  // user.
  ~CudaStream() override;

  void start(const Kernel& kernel) override;
  void wait_for(const Token& token) override;
  [[nodiscard]] Token record() override;

  // For work that is put into the stream beside start(): ask for it each time, so that the next
  // token covers that work.
  [[nodiscard]] cudaStream_t handle() {
    has_started_since_ = true;
    return stream_.get();
  }
  [[nodiscard]] int device_index() const override { return device_index_; }
  [[nodiscard]] bool is_done(std::uint64_t point) override { return points_.is_done(point); }
  [[nodiscard]] bool wait(std::uint64_t point, Seconds longest) override {
    return points_.wait(point, longest);
  }
  void make_wait(cudaStream_t stream, std::uint64_t point) override {
    points_.make_wait(stream, point);
  }

 private:
  int device_index_;
  DeviceTables& tables_;
  StreamHandle stream_;
  EventPoints points_;
  std::uint64_t recorded_ = 0;      // the last point
  bool has_started_since_ = false;  // something that the last point does not cover
};

}  // namespace paceline::runtime::cuda

// An NVIDIA GPU as a device: kernels run on its streams, and the host waits for tokens only.
//
// Where Paceline is built without a CUDA toolkit, the same symbols say so.
//
// Memory. `device` memory comes from cudaMalloc and not from cudaMallocAsync: it is allocated while
// a job is set up, all streams use it at once, and NCCL and captured graphs keep its addresses;
// memory from a stream's pool would have to be ordered against each of them. `pinned` memory comes
// from cudaHostAlloc, is portable between devices, and has one address on both sides. `host` memory
// is the host's own, which kernels do not take.
//
// Thread safety: any thread may allocate and make streams.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/device/device.h"

namespace paceline::runtime {

namespace cuda {
class DeviceTables;
}

class CudaDevice final : public Device {
 public:
  // The number of GPUs that this process can use: 0 where there is no GPU, no driver, or no CUDA in
  // this build. Throws RunError if the driver fails otherwise.
  [[nodiscard]] static int count();

  // The GPU of that number, from 0. Throws RunError "cannot use a CUDA device: no CUDA device was
  // found", or one that says how many there are; UnavailableError if this build is without CUDA.
  explicit CudaDevice(int index = 0);
  ~CudaDevice() override;

  [[nodiscard]] std::string_view name() const override { return "cuda"; }
  [[nodiscard]] int index() const { return index_; }
  // What it is, for reports: "NVIDIA H100 80GB HBM3, sm_90".
  [[nodiscard]] const std::string& description() const { return description_; }
  // A text that no other GPU has, in any process and on any machine.
  [[nodiscard]] const std::string& identity() const { return identity_; }

  [[nodiscard]] MemoryKinds takes() const override {
    return {MemoryKind::pinned, MemoryKind::device};
  }
  [[nodiscard]] MemoryKind fastest() const override { return MemoryKind::device; }
  // Throws RunError if there is none left.
  [[nodiscard]] Memory allocate(std::size_t bytes, MemoryKind kind) override;
  // A cuda::CudaStream (cuda_stream.h).
  [[nodiscard]] std::unique_ptr<Stream> make_stream() override;

 private:
  int index_ = 0;
  std::string description_;
  std::string identity_;
  std::unique_ptr<cuda::DeviceTables> tables_;  // of its streams' kernels
};

}  // namespace paceline::runtime

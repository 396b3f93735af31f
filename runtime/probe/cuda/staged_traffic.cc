// Tests: tests/cuda/calibration.
#include <fmt/format.h>

#include "models/base/parse_units.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/probe/cuda/traffic.h"

namespace paceline::runtime::cuda {
namespace {

class StagedTraffic final : public Traffic {
 public:
  StagedTraffic(CudaDevice& device, std::size_t bytes)
      : index_(device.index()),
        bytes_(bytes),
        bucket_(device.allocate(bytes, MemoryKind::device)),
        arrived_(device.allocate(bytes, MemoryKind::device)),
        sent_(device.allocate(bytes, MemoryKind::pinned)),
        received_(device.allocate(bytes, MemoryKind::pinned)),
        made_(device.make_stream()),
        stream_(static_cast<CudaStream*>(made_.get())) {
    stream_->start(Fill{bucket_.array(models::NumberType::fp32), 0});
    stream_->start(
        Cast{bucket_.array(models::NumberType::fp32), received_.array(models::NumberType::fp32)});
    wait_for(stream_->record(), device_patience, "set up the traffic");
  }

  [[nodiscard]] std::string description() const override {
    return fmt::format(
        "copies of {} to the host and to the device and their sums, as there is one GPU",
        to_text_binary(Bytes{static_cast<double>(bytes_)}));
  }
  void start(int rounds) override {
    const CurrentDevice current(index_);
    for (int i = 0; i < rounds; ++i) {
      check(cudaMemcpyAsync(sent_.data(), bucket_.data(), bytes_, cudaMemcpyDeviceToHost,
                            stream_->handle()),
            "start a copy");
      check(cudaMemcpyAsync(arrived_.data(), received_.data(), bytes_, cudaMemcpyHostToDevice,
                            stream_->handle()),
            "start a copy");
      stream_->start(
          Add{arrived_.array(models::NumberType::fp32), bucket_.array(models::NumberType::fp32)});
    }
  }
  [[nodiscard]] cudaStream_t stream() override { return stream_->handle(); }

 private:
  int index_;
  std::size_t bytes_;
  Memory bucket_;
  Memory arrived_;
  Memory sent_;
  Memory received_;
  std::unique_ptr<Stream> made_;  // is the first to go, because it waits for what it runs
  CudaStream* stream_;
};

}  // namespace

std::unique_ptr<Traffic> make_staged_traffic(CudaDevice& device, std::size_t message_bytes) {
  return std::make_unique<StagedTraffic>(device, message_bytes);
}

}  // namespace paceline::runtime::cuda

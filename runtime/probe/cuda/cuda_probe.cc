// Tests: tests/cuda/calibration.
#include "runtime/probe/cuda/cuda_probe.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "models/base/error.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/probe/cuda/nccl_probe.h"
#include "runtime/probe/cuda/network_probe.h"
#include "runtime/probe/cuda/timer.h"

namespace paceline::runtime {
namespace {

using cuda::check;
using models::DeviceWork;
using models::NumberType;

// Tensors of a bucket that is packed: a network's buckets have from one to dozens.
constexpr std::size_t packed_tensors = 16;

std::string version_text(int version) {  // 13000
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// "580.65.06" of "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  ...": the first word that
// begins with a digit and has a dot.
std::string kernel_driver() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  for (std::string word; words >> word;)
    if (word.front() >= '0' && word.front() <= '9' && word.find('.') != std::string::npos)
      return word;
  return {};
}

// What the backend says beside the device: "own kernels".
std::string layers_of(const Backend& backend) {
  constexpr std::string_view before = ", layers by ";
  const std::string text = backend.description();
  const std::size_t at = text.find(before);
  return at == std::string::npos ? "own kernels" : text.substr(at + before.size());
}

ProbedDevice describe(const CudaDevice& device, const Backend& backend, bool all_devices) {
  int driver = 0;
  int runtime = 0;
  check(cudaDriverGetVersion(&driver), "ask for the version of the CUDA driver");
  check(cudaRuntimeGetVersion(&runtime), "ask for the version of the CUDA runtime");
  const std::string kernel = kernel_driver();
  return {.description = device.description(),
          .driver =
              fmt::format("{}{}CUDA {}", kernel, kernel.empty() ? "" : ", ", version_text(driver)),
          .runtime = "CUDA " + version_text(runtime),
          .collectives = cuda::nccl_version(),
          .layers = layers_of(backend),
          .devices = all_devices ? CudaDevice::count() : 1};
}

// Work on arrays that stay in place, for one size and type at a time.
class Works {
 public:
  Works(CudaDevice& device, cuda::CudaStream& stream) : device_(device), stream_(stream) {
    found_ = device.allocate(sizeof(std::uint32_t), MemoryKind::pinned);
    *reinterpret_cast<std::uint32_t*>(found_.data()) = 0;
  }

  // Puts `count` of them into the stream.
  void start(DeviceWork work, NumberType type, std::size_t bytes, int count) {
    prepare(work, type, bytes);
    for (int i = 0; i < count; ++i) start_one(work, type);
  }
  void prepare(DeviceWork work, NumberType type, std::size_t bytes) {
    const std::size_t elements = std::max<std::size_t>(1, bytes / bytes_of(type));
    if (elements_ == elements && type_ == type && work_ == work) return;
    wait_for(stream_.record(), device_patience, "time the work of a device");
    elements_ = elements;
    type_ = type;
    work_ = work;
    const std::size_t own = elements * bytes_of(type);
    const std::size_t wide = elements * sizeof(float);
    const bool is_copy = work == DeviceWork::host_to_device || work == DeviceWork::device_to_host;
    reserve(first_, is_copy || work == DeviceWork::copy ? own : wide, MemoryKind::device);
    if (is_copy)
      reserve(pinned_, own, MemoryKind::pinned);
    else
      reserve(second_, own, MemoryKind::device);
    // Numbers that every sum and cast stays finite with.
    stream_.start(Fill{floats(first_), 0});
    if (is_copy)
      std::ranges::fill(pinned_.bytes().first(own), std::byte{0});
    else
      stream_.start(Fill{floats(second_), 0});
    casts_ = work == DeviceWork::pack ? table() : CastTable();
  }

 private:
  void reserve(Memory& memory, std::size_t bytes, MemoryKind kind) {
    bytes = (bytes + sizeof(float) - 1) / sizeof(float) * sizeof(float);
    if (memory.size() >= bytes) return;
    memory = {};
    memory = device_.allocate(bytes, kind);
  }
  static ArrayView floats(const Memory& memory) { return memory.array(NumberType::fp32); }
  [[nodiscard]] ArrayView wide() const { return floats(first_).part(0, elements_); }
  [[nodiscard]] ArrayView narrow() const { return second_.array(type_).part(0, elements_); }

  [[nodiscard]] CastTable table() const {
    std::vector<Cast> casts;
    for (std::size_t i = 0; i < packed_tensors; ++i) {
      const std::size_t begin = elements_ * i / packed_tensors;
      const std::size_t count = elements_ * (i + 1) / packed_tensors - begin;
      if (count > 0) casts.push_back({wide().part(begin, count), narrow().part(begin, count)});
    }
    return CastTable(std::move(casts));
  }

  void copy(void* to, const void* from, cudaMemcpyKind kind) {
    check(cudaMemcpyAsync(to, from, elements_ * bytes_of(type_), kind, stream_.handle()),
          "start a copy");
  }
  void start_one(DeviceWork work, NumberType type) {
    switch (work) {
      case DeviceWork::host_to_device:
        return copy(first_.data(), pinned_.data(), cudaMemcpyHostToDevice);
      case DeviceWork::device_to_host:
        return copy(pinned_.data(), first_.data(), cudaMemcpyDeviceToHost);
      case DeviceWork::copy:
        return copy(second_.data(), first_.data(), cudaMemcpyDeviceToDevice);
      case DeviceWork::cast:
        stream_.start(Cast{wide(), narrow()});
        return stream_.start(Cast{narrow(), wide()});
      case DeviceWork::reduce:
        return stream_.start(
            Add{first_.array(type).part(0, elements_), second_.array(type).part(0, elements_)});
      case DeviceWork::pack:
        return stream_.start(CastMany{&casts_});
      case DeviceWork::unpack:
        return stream_.start(
            Unscale{narrow(), wide(), 1, reinterpret_cast<std::uint32_t*>(found_.data())});
    }
  }

  CudaDevice& device_;
  cuda::CudaStream& stream_;
  DeviceWork work_ = DeviceWork::copy;
  NumberType type_ = NumberType::fp32;
  std::size_t elements_ = 0;
  Memory first_;
  Memory second_;
  Memory pinned_;
  Memory found_;
  CastTable casts_;
};

class CudaProbe final : public DeviceProbe {
 public:
  CudaProbe(std::unique_ptr<Backend> backend, bool all_devices)
      : backend_(std::move(backend)),
        device_(dynamic_cast<CudaDevice&>(backend_->device())),
        facts_(describe(device_, *backend_, all_devices)),
        current_(std::in_place, device_.index()),
        marks_(2),
        made_(device_.make_stream()),
        stream_(static_cast<cuda::CudaStream*>(made_.get())),
        works_(device_, *stream_) {}

  [[nodiscard]] const ProbedDevice& device() const override { return facts_; }
  [[nodiscard]] std::vector<std::string> notes() const override { return backend_->notes(); }

  [[nodiscard]] double time(DeviceWork work, NumberType type, std::size_t bytes,
                            int count) override {
    works_.start(work, type, bytes, 1);
    return between_marks([&] { works_.start(work, type, bytes, count); }) /
           (work == DeviceWork::cast ? 2.0 * count : count);
  }

  [[nodiscard]] Launch time_launches(int count) override {
    if (one_.size() == 0) one_ = device_.allocate(sizeof(float), MemoryKind::device);
    const Fill fill{one_.array(NumberType::fp32), 0};
    stream_->start(fill);
    double host = 0;
    const double device = between_marks([&] {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < count; ++i) stream_->start(fill);
      host = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    });
    return {.device = device / count, .host = host / count};
  }

  [[nodiscard]] std::unique_ptr<NetworkProbe> load(const models::Network& network, int batch,
                                                   models::Precision precision) override {
    return cuda::make_network_probe(
        *backend_, network, {.batch = batch, .precision = precision, .devices = facts_.devices});
  }
  [[nodiscard]] std::unique_ptr<CollectiveProbe> make_collectives(int ranks) override {
    return ranks > facts_.devices ? nullptr : cuda::make_nccl_probe(ranks);
  }

 private:
  // Seconds between two marks, of which the first stands behind work of the same kind: the host is
  // ahead of the device then.
  template <class Work>
  double between_marks(const Work& work) {
    marks_.clear();
    marks_.put(stream_->handle());
    work();
    marks_.put(stream_->handle());
    marks_.wait("time the work of a device");
    return marks_.seconds(0, 1);
  }

  std::unique_ptr<Backend> backend_;
  CudaDevice& device_;
  ProbedDevice facts_;
  std::optional<cuda::CurrentDevice> current_;
  cuda::Marks marks_;
  Memory one_;
  std::unique_ptr<Stream> made_;
  cuda::CudaStream* stream_;
  Works works_;
};

}  // namespace

std::unique_ptr<DeviceProbe> make_cuda_probe(std::unique_ptr<Backend> backend, bool all_devices) {
  return std::make_unique<CudaProbe>(std::move(backend), all_devices);
}

}  // namespace paceline::runtime

// The layers of a network on a CUDA device, forward and backward: by cuDNN, by our own kernels where
// these are asked for, and the least time that the device needs to move their bytes and to do their
// arithmetic.
//
//   cuda_network_benchmark [NETWORK [BATCH [fp16|bf16|fp32 [own]]]]     resnet50, 64, fp16
//
// A row for each layer that has work, in tabs: layer, pass, cudnn_us, own_us, memory_us,
// arithmetic_us, share. Times are those of CUDA events around the layer's work in a training pass,
// medians of 20 passes (own_us: of 2, because these kernels are slow; "-" without `own`), where work is put into the stream
// layer by layer; a layer whose kernels are shorter than their launches is timed by the latter.
// memory_us is for the operands that the layer's steps name, each moved once, at the bandwidth of a
// copy on the device in the same run. arithmetic_us is for FLOPs at the dense tensor-core rate of the
// data sheets (FLOPs in a cycle of a multiprocessor, at the device's highest clock). share is the
// larger of both over cudnn_us. The last row, "all", has sums.
//
// Without a GPU it says so, and ends with 77.
#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/base/error.h"
#include "models/network/zoo.h"
#include "runtime/device/copies.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/device/cuda/handle.h"
#include "runtime/network/cuda/cuda_network.h"
#include "runtime/network/cuda/step_library.h"
#include "runtime/network/cudnn/cudnn_steps.h"
#include "runtime/network/steps/layer_steps.h"

namespace {

using namespace paceline;  // NOLINT: a benchmark of it
using namespace paceline::runtime;
using models::Network;
using models::NumberType;

using Part = std::pair<bool, int>;  // backward, layer
using Seconds = std::map<Part, double>;

// Records an event behind each layer's work.
class Events final : public PassMarker {
 public:
  void began(bool /*backward*/, Stream& stream) override { record({false, -1}, stream); }
  void ended(bool backward, int layer, Stream& stream) override {
    record({backward, layer}, stream);
  }
  // The times between events, once all are done; forgets them.
  Seconds take() {
    Seconds seconds;
    for (std::size_t i = 1; i < recorded_.size(); ++i) {
      if (recorded_[i].first.second < 0) continue;  // the begin of a pass
      float ms = 0;
      cuda::check(cudaEventElapsedTime(&ms, recorded_[i - 1].second, recorded_[i].second),
                  "read the time");
      seconds[recorded_[i].first] += static_cast<double>(ms) * 1e-3;
    }
    recorded_.clear();
    return seconds;
  }

 private:
  void record(const Part& part, Stream& stream) {
    if (recorded_.size() == events_.size()) events_.push_back(cuda::make_event_handle(true));
    cudaEvent_t event = events_[recorded_.size()].get();
    cuda::check(cudaEventRecord(event, dynamic_cast<cuda::CudaStream&>(stream).handle()),
                "record an event");
    recorded_.emplace_back(part, event);
  }
  std::vector<cuda::EventHandle> events_;
  std::vector<std::pair<Part, cudaEvent_t>> recorded_;
};

double median(std::vector<double>& all) {
  std::nth_element(all.begin(), all.begin() + static_cast<long>(all.size() / 2), all.end());
  return all[all.size() / 2];
}

Seconds measure(CudaDevice& device, const Network& network, const TrainableNetworkOptions& options,
                std::unique_ptr<cuda::StepLibrary> library, int passes) {
  CudaNetwork trained(device, network, options, std::move(library));
  const std::unique_ptr<Stream> stream = device.make_stream();
  const std::vector<float> weights = initial_weights(network, {});
  const std::size_t bytes = weights.size() * sizeof(float);
  const Memory master = device.allocate(bytes, MemoryKind::device);
  const Memory gradients = device.allocate(bytes, MemoryKind::device);
  copy_from_host(device, *stream, weights, master.array(NumberType::fp32));
  stream->wait_for(trained.take_weights(master.array(NumberType::fp32), 0,
                                        static_cast<int>(trained.parameters().size()),
                                        stream->record()));
  const auto batch = static_cast<std::size_t>(options.batch);
  const std::vector<float> images(batch * static_cast<std::size_t>(network.input().elements()),
                                  0.5F);
  const std::vector<std::int32_t> labels(batch, 0);
  Events events;
  std::map<Part, std::vector<double>> all;
  for (int pass = -1; pass < passes; ++pass) {
    trained.mark(&events);
    static_cast<void>(trained.forward(images, labels, Pass::training, 1));
    trained.compute_gradients(1, gradients.array(NumberType::fp32), {});
    trained.mark(nullptr);
    static_cast<void>(trained.logits());  // waits
    const Seconds seconds = events.take();
    if (pass < 0) continue;  // loads kernels
    for (const auto& [part, s] : seconds) all[part].push_back(s);
  }
  Seconds medians;
  for (auto& [part, values] : all) medians[part] = median(values);
  return medians;
}

struct Work {
  double bytes = 0;
  double flops = 0;
};

// What the steps of each layer have to move and to compute.
std::map<Part, Work> work_of(const Network& network, const TrainableNetworkOptions& options) {
  const std::vector<steps::Images> shapes = steps::stored_shapes(network, options.batch);
  std::map<int, std::vector<double>> parameters;  // elements, as declared
  for (const ParameterPlace& place : parameter_places(network)) {
    const bool is_first = place.role == ParameterRole::weight || place.role == ParameterRole::gamma;
    auto& of_layer = parameters[place.layer];
    of_layer.insert(is_first ? of_layer.begin() : of_layer.end(),
                    static_cast<double>(place.elements));
  }
  const double width = options.storage == NumberType::fp32 ? 4 : 2;
  const auto elements = [&](int value) {
    const steps::Images& i = shapes[static_cast<std::size_t>(value + 1)];
    return static_cast<double>(i.batch * i.channels * i.height * i.width);
  };
  const auto bytes_of = [&](const steps::Tensor& tensor) {
    using Kind = steps::Tensor::Kind;
    switch (tensor.kind) {
      case Kind::data:
      case Kind::gradient:
        return width * elements(tensor.layer);
      case Kind::gradient_part:
        return width * elements(network.layers()[static_cast<std::size_t>(tensor.layer)]
                                    .inputs[static_cast<std::size_t>(tensor.part)]);
      case Kind::parameter:
      case Kind::parameter_gradient:
        return width * parameters[tensor.layer][static_cast<std::size_t>(tensor.part)];
      case Kind::statistics:
      case Kind::kept:
        break;  // small: vectors, and bytes
    }
    return 0.0;
  };
  std::map<Part, Work> work;
  for (const steps::Step& step : steps::layer_steps(network, options.batch)) {
    Work& here = work[{step.pass == steps::Pass::backward, std::max(step.layer, 0)}];
    for (const auto* operands : {&step.reads, &step.writes})
      for (const steps::Operand& operand : *operands) here.bytes += bytes_of(operand.tensor);
    if (const auto* operation = std::get_if<steps::Operation>(&step.work))
      here.flops += static_cast<double>(steps::flops(*operation));
  }
  return work;
}

// Bytes in a second that a copy on the device reads and writes.
double copy_bandwidth(CudaDevice& device) {
  constexpr std::size_t bytes = std::size_t{256} << 20;
  constexpr int copies = 20;
  const Memory from = device.allocate(bytes, MemoryKind::device);
  const Memory to = device.allocate(bytes, MemoryKind::device);
  const std::unique_ptr<Stream> stream = device.make_stream();
  cudaStream_t handle = dynamic_cast<cuda::CudaStream&>(*stream).handle();
  const cuda::EventHandle begin = cuda::make_event_handle(true);
  const cuda::EventHandle end = cuda::make_event_handle(true);
  const auto copy = [&] {
    cuda::check(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, handle),
                "copy");
  };
  cuda::check(cudaMemsetAsync(from.data(), 0, bytes, handle), "fill");
  copy();
  cuda::check(cudaEventRecord(begin.get(), handle), "record an event");
  for (int i = 0; i < copies; ++i) copy();
  cuda::check(cudaEventRecord(end.get(), handle), "record an event");
  wait_for(stream->record(), device_patience, "copy");
  float ms = 0;
  cuda::check(cudaEventElapsedTime(&ms, begin.get(), end.get()), "read the time");
  return 2.0 * bytes * copies / (static_cast<double>(ms) * 1e-3);
}

// FLOPs in a second on tensor cores, dense: A100 312, H100 989 TFLOPS in 16 bits at their boost
// clocks (NVIDIA's data sheets); TF32 has half of it. 0 for an architecture that is not known here.
double tensor_rate(int device, NumberType storage) {
  const auto attribute = [device](cudaDeviceAttr what) {
    int value = 0;
    cuda::check(cudaDeviceGetAttribute(&value, what, device), "ask the device");
    return value;
  };
  const std::map<int, double> flops_of_cycle = {{8, 2048}, {9, 4096}};
  const auto found = flops_of_cycle.find(attribute(cudaDevAttrComputeCapabilityMajor));
  if (found == flops_of_cycle.end()) return 0;
  return found->second * attribute(cudaDevAttrMultiProcessorCount) *
         attribute(cudaDevAttrClockRate) * 1e3 / (storage == NumberType::fp32 ? 2 : 1);
}

NumberType storage_of(const std::string& name) {
  for (const NumberType type : {NumberType::fp32, NumberType::fp16, NumberType::bf16})
    if (name == models::name(type)) return type;
  throw InputError("there is no type '" + name + "'", "use fp16, bf16 or fp32");
}

void run(const std::string& name, int batch, NumberType storage, bool has_own) {
  CudaDevice device;
  const Network network = models::zoo_network(name);
  const TrainableNetworkOptions options{.batch = batch, .storage = storage};
  const std::unique_ptr<cuda::StepLibraries> cudnn = cudnn::open_cudnn({.device = 0});
  const Seconds by_cudnn = measure(device, network, options, cudnn->make(), 20);
  // Our own kernels take 10 s and more of a GPU.
  Seconds by_own;
  if (has_own) by_own = measure(device, network, options, nullptr, 2);
  const std::map<Part, Work> work = work_of(network, options);
  const double bandwidth = copy_bandwidth(device);
  const double rate = tensor_rate(0, storage);
  fmt::print("# {}, batch {}, {}, {}, {}; a copy moves {:.0f} GB/s, tensor cores {:.0f} TFLOPS\n",
             name, batch, models::name(storage), device.description(), cudnn->description(),
             bandwidth / 1e9, rate / 1e12);
  fmt::print("layer\tpass\tcudnn_us\town_us\tmemory_us\tarithmetic_us\tshare\n");
  const auto row = [&](const std::string& layer, const char* pass, double cudnn_s, double own_s,
                       double memory_s, double arithmetic_s, double floor_s) {
    fmt::print("{}\t{}\t{:.2f}\t{}\t{:.2f}\t{:.2f}\t{:.3f}\n", layer, pass, cudnn_s * 1e6,
               has_own ? fmt::format("{:.2f}", own_s * 1e6) : "-", memory_s * 1e6,
               arithmetic_s * 1e6, floor_s / cudnn_s);
  };
  double cudnn_s = 0;
  double own_s = 0;
  double memory_s = 0;
  double arithmetic_s = 0;
  double floor_s = 0;
  for (const auto& [part, of_layer] : work) {
    const double memory = of_layer.bytes / bandwidth;
    const double arithmetic = rate > 0 ? of_layer.flops / rate : 0;
    const double own = has_own ? by_own.at(part) : 0;
    row(network.layers()[static_cast<std::size_t>(part.second)].name,
        part.first ? "backward" : "forward", by_cudnn.at(part), own, memory, arithmetic,
        std::max(memory, arithmetic));
    cudnn_s += by_cudnn.at(part);
    own_s += own;
    memory_s += memory;
    arithmetic_s += arithmetic;
    floor_s += std::max(memory, arithmetic);
  }
  row("all", "both", cudnn_s, own_s, memory_s, arithmetic_s, floor_s);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (CudaDevice::count() == 0) {
      std::puts("skipped: no GPU on this machine");
      return 77;
    }
    const std::vector<std::string> words(argv + 1, argv + argc);
    const auto word = [&](std::size_t i, const char* otherwise) {
      return i < words.size() ? words[i] : std::string(otherwise);
    };
    run(word(0, "resnet50"), std::stoi(word(1, "64")), storage_of(word(2, "fp16")),
        word(3, "") == "own");
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "cuda_network_benchmark: {}\n", error.what());
    return 1;
  }
}

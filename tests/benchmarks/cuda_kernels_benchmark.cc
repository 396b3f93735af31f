// Kernels of a CUDA device, each as a share of the bandwidth of a copy in memory of the device
// (cudaMemcpyAsync) in the same run: "share" is the time of a copy that moves as many bytes, over the
// kernel's time. Bytes are those that the kernel has to read and write (runtime/device/cuda/bodies);
// a copy's are both of its sides.
//
// Times are those of CUDA events around many launches, so that a launch costs what it costs in a
// stream that is never empty. "Launch" is a kernel on four numbers: the harness's own overhead.
// Without a GPU it says so, and ends with 77.
#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/base/error.h"
#include "models/network/zoo.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/device/cuda/event_points.h"
#include "runtime/device/cuda/handle.h"
#include "runtime/network/trainable_network.h"

namespace {

using namespace paceline;  // NOLINT: a benchmark of it
using namespace paceline::runtime;
using models::NumberType;

constexpr std::size_t elements = std::size_t{1} << 26;  // 256 MiB of FP32, many times the cache
constexpr int launches = 20;                            // between two events

class Bench {
 public:
  Bench() {
    for (Memory& memory : arrays_) {
      memory = device_.allocate(elements * sizeof(float), MemoryKind::device);
      stream_->start(Fill{memory.array(NumberType::fp32), 1});
    }
    found_ = device_.allocate(sizeof(std::uint32_t), MemoryKind::pinned);
    wait_for(stream_->record(), device_patience, "set up the benchmark");
  }

  [[nodiscard]] const CudaDevice& device() const { return device_; }
  [[nodiscard]] Stream& stream() { return *stream_; }
  [[nodiscard]] ArrayView array(std::size_t i, NumberType type,
                                std::size_t count = elements) const {
    return arrays_.at(i).array(type).part(0, count);
  }
  [[nodiscard]] std::uint32_t* found() const {
    return reinterpret_cast<std::uint32_t*>(found_.data());
  }

  // Seconds that one action takes on the device.
  template <class Action>
  double seconds_of(const Action& action) {
    cuda::check(cudaEventRecord(begin_.get(), handle()), "record an event");
    for (int i = 0; i < launches; ++i) action();
    cuda::check(cudaEventRecord(end_.get(), handle()), "record an event");
    if (!points_.wait(points_.record(handle()), device_patience))
      throw RunError("end a benchmark", "the device was not done");
    float ms = 0;
    cuda::check(cudaEventElapsedTime(&ms, begin_.get(), end_.get()), "read the time");
    return static_cast<double>(ms) * 1e-3 / launches;
  }
  // Seconds of a copy that moves this many bytes, half of them read and half written.
  double copy_seconds(double bytes) {
    const auto half = std::min(static_cast<std::size_t>(bytes / 2), elements * sizeof(float));
    const double seconds = seconds_of([&] {
      cuda::check(cudaMemcpyAsync(arrays_[4].data(), arrays_[5].data(), half,
                                  cudaMemcpyDeviceToDevice, handle()),
                  "copy");
    });
    return seconds * bytes / (2 * static_cast<double>(half));
  }

 private:
  [[nodiscard]] cudaStream_t handle() const { return stream_->handle(); }

  CudaDevice device_;
  std::unique_ptr<Stream> made_ = device_.make_stream();
  cuda::CudaStream* stream_ = &dynamic_cast<cuda::CudaStream&>(*made_);
  cuda::EventHandle begin_ = cuda::make_event_handle(true);
  cuda::EventHandle end_ = cuda::make_event_handle(true);
  cuda::EventPoints points_{0, "run a benchmark"};
  std::array<Memory, 6> arrays_;
  Memory found_;
};

double median(std::vector<double>& all) {
  std::nth_element(all.begin(), all.begin() + static_cast<long>(all.size() / 2), all.end());
  return all[all.size() / 2];
}

// `bytes` is what one start of the kernel has to move.
void add(Bench& bench, const std::string& name, double bytes, const Kernel& kernel) {
  auto* const registered =
      benchmark::RegisterBenchmark(name.c_str(), [&bench, bytes, kernel](benchmark::State& state) {
        const auto start = [&] { bench.stream().start(kernel); };
        static_cast<void>(bench.seconds_of(start));  // loads the kernel, and its table
        std::vector<double> kernels;
        std::vector<double> copies;
        for (auto _ : state) {
          kernels.push_back(bench.seconds_of(start));
          copies.push_back(bench.copy_seconds(bytes));
          state.SetIterationTime(kernels.back());
        }
        const double seconds = median(kernels);
        state.counters["share"] = median(copies) / seconds;
        state.counters["GB_per_s"] = bytes / seconds / 1e9;
      });
  registered->UseManualTime()->Iterations(31)->Unit(benchmark::kMicrosecond);
}

void add_arrays(Bench& bench) {
  const auto n = static_cast<double>(elements);
  add(bench, "Launch", 16, Fill{bench.array(0, NumberType::fp32, 4), 1});
  add(bench, "Fill", 4 * n, Fill{bench.array(0, NumberType::fp32), 1});
  add(bench, "FindNotFinite", 4 * n,
      FindNotFinite{bench.array(0, NumberType::fp32), bench.found()});
  add(bench, "Add/fp32", 12 * n,
      Add{bench.array(1, NumberType::fp32), bench.array(0, NumberType::fp32)});
  for (const NumberType type : {NumberType::fp16, NumberType::bf16}) {
    const std::string name(models::name(type));
    const ArrayView wide = bench.array(0, NumberType::fp32);
    const ArrayView half = bench.array(1, type, elements);
    const ArrayView other = bench.array(2, type, elements);
    add(bench, "Cast/fp32-" + name, 6 * n, Cast{wide, half});
    add(bench, "Cast/" + name + "-fp32", 6 * n, Cast{half, wide});
    // Arrays out of step, as a sum in the middle of a bucket may have them.
    add(bench, "Cast/fp32-" + name + "/misaligned", 6 * (n - 1),
        Cast{wide.part(1, elements - 1), half.part(0, elements - 1)});
    add(bench, "Add/" + name, 6 * n, Add{other, half});
    add(bench, "Add/" + name + "-fp32", 10 * n, Add{half, wide});
    add(bench, "Unscale/" + name, 6 * n, Unscale{half, wide, 0.5F, bench.found()});
  }
}

// The parameters of a network, all of them weights.
UpdateTable table_of(const std::vector<ParameterPlace>& places, bool lars) {
  std::vector<UpdatedTensor> tensors;
  for (const ParameterPlace& place : places)
    tensors.push_back({.offset = static_cast<std::size_t>(place.offset),
                       .elements = static_cast<std::size_t>(place.elements),
                       .decay = 1e-4F,
                       .has_own_rate = lars});
  return {tensors, lars, 1};
}

// Working copies in FP16 in one array. Filters have the order KRSC, and channels up to a multiple of
// four.
WorkingCopies copies_of(const std::vector<ParameterPlace>& places, const ArrayView& array) {
  std::vector<WorkingCopy> copies;
  std::size_t first = 0;
  for (const ParameterPlace& place : places) {
    WorkingCopy copy;
    copy.offset = static_cast<std::size_t>(place.offset);
    const auto size = [&](std::size_t i) {
      return i < place.shape.size() ? static_cast<std::size_t>(place.shape[i]) : 1;
    };
    copy.outputs = size(0);
    copy.channels = size(1);
    copy.pixels = size(2) * size(3);
    copy.stored_channels = place.shape.size() < 4 ? copy.channels : (copy.channels + 3) / 4 * 4;
    copy.target = array.part(first, copy.outputs * copy.pixels * copy.stored_channels);
    first += (copy.target.elements + 127) / 128 * 128;  // as a network aligns them
    copies.push_back(copy);
  }
  return WorkingCopies(std::move(copies));
}

// The tables live as long as the program, which ends with the benchmarks.
struct Tables {
  std::deque<UpdateTable> updates;
  std::deque<CastTable> casts;
  std::deque<WorkingCopies> copies;
};

void add_network(Bench& bench, const std::string& network, Tables& tables) {
  const std::vector<ParameterPlace> places = parameter_places(models::zoo_network(network));
  const auto count = static_cast<std::size_t>(places.back().offset + places.back().elements);
  if (count > elements) return;
  // Copies are in the array that RMSprop's mean squares have: no step needs both.
  const WorkingCopies& copies =
      tables.copies.emplace_back(copies_of(places, bench.array(3, NumberType::fp16)));
  const auto n = static_cast<double>(count);
  const auto update = [&](const std::string& name, bool lars, bool rmsprop, double bytes,
                          bool writes_copies) {
    const UpdateRule rule{.learning_rate = 1e-6,
                          .momentum = 0.9F,
                          .trust_coefficient = 1e-3,
                          .rmsprop = rmsprop,
                          .sgd_rate = 1e-6F,
                          .rmsprop_rate = 1e-6F,
                          .square_decay = 0.9F,
                          .rmsprop_epsilon = 1e-6F};
    const UpdateTable& table = tables.updates.emplace_back(table_of(places, lars));
    add(bench, name + "/" + network, bytes * n,
        UpdateParameters{
            .table = &table,
            .rule = rule,
            .weights = bench.array(0, NumberType::fp32, count),
            .gradients = bench.array(1, NumberType::fp32, count),
            .momentum = bench.array(2, NumberType::fp32, count),
            .mean_square = rmsprop ? bench.array(3, NumberType::fp32, count) : ArrayView{},
            .copies = writes_copies ? &copies : nullptr});
  };
  update("MomentumSgd", false, false, 20, false);
  update("MomentumSgd/copies", false, false, 22, true);
  update("Lars", true, false, 28, false);  // 8 of them for the norms
  update("Lars/copies", true, false, 30, true);
  update("RmspropWarmUp", false, true, 28, false);

  std::vector<Cast> pack;
  for (const ParameterPlace& place : places) {
    const auto first = static_cast<std::size_t>(place.offset);
    const auto size = static_cast<std::size_t>(place.elements);
    pack.push_back({bench.array(0, NumberType::fp32).part(first, size),
                    bench.array(1, NumberType::fp16).part(first, size)});
  }
  add(bench, "CastMany/" + network, 6 * n, CastMany{&tables.casts.emplace_back(std::move(pack))});
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (CudaDevice::count() == 0) {
    std::fputs("no CUDA device was found: nothing was measured\n", stderr);
    return 77;
  }
  Bench bench;
  benchmark::AddCustomContext("device", bench.device().description());
  Tables tables;
  add_arrays(bench);
  for (const char* network : {"resnet-small", "resnet50"}) add_network(bench, network, tables);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

// Tests: tests/cuda/calibration.
#include "calibration/measure/device_times.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "calibration/fit/statistics.h"
#include "calibration/measure/repetition.h"
#include "models/base/parse_units.h"

namespace paceline::calibration {
namespace {

using models::CurveKind;
using models::DeviceWork;
using models::NumberType;
using runtime::IterationTimes;

// A sample is the mean of as many works as take so long, because a device's clock tells half a
// microsecond; and of no more than it takes without making the host wait.
constexpr double least_sample_s = 200e-6;
constexpr int most_in_a_row = 256;

constexpr std::array<std::pair<DeviceWork, NumberType>, 13> works = {
    {{DeviceWork::host_to_device, NumberType::fp32},
     {DeviceWork::device_to_host, NumberType::fp32},
     {DeviceWork::copy, NumberType::fp32},
     {DeviceWork::cast, NumberType::fp16},
     {DeviceWork::cast, NumberType::bf16},
     {DeviceWork::reduce, NumberType::fp32},
     {DeviceWork::reduce, NumberType::fp16},
     {DeviceWork::reduce, NumberType::bf16},
     {DeviceWork::pack, NumberType::fp32},
     {DeviceWork::pack, NumberType::fp16},
     {DeviceWork::pack, NumberType::bf16},
     {DeviceWork::unpack, NumberType::fp16},
     {DeviceWork::unpack, NumberType::bf16}}};

// Powers of four from `least` on, and the largest.
std::vector<std::size_t> sizes_up_to(std::size_t least, std::size_t largest) {
  std::vector<std::size_t> sizes;
  for (std::size_t size = least; size < largest; size *= 4) sizes.push_back(size);
  sizes.push_back(largest);
  return sizes;
}

std::vector<Seconds> in_seconds(const std::vector<double>& values) {
  std::vector<Seconds> all;
  for (const double value : values) all.emplace_back(value);
  return all;
}

// Samples of what takes `timed(count)` seconds each, `count` in a row.
std::vector<double> samples_of(const std::function<double(int)>& timed, Seconds time) {
  (void)timed(1);  // loads kernels, connects ranks
  const double each = std::max(timed(2), 1e-9);
  const int count =
      static_cast<int>(std::clamp(std::ceil(least_sample_s / each), 1.0, double{most_in_a_row}));
  return repeat({.time = time}, [&] { return std::vector<double>{timed(count)}; });
}

void add_samples(std::vector<Sample>& samples, std::size_t bytes,
                 const std::vector<double>& seconds) {
  for (const double s : seconds)
    samples.push_back({Bytes{static_cast<double>(bytes)}, Seconds{std::max(s, 1e-12)}});
}

void report(const Progress& progress, const std::string& what, double share) {
  if (progress) progress(what, share);
}

// The passes of all layers, one sample for each iteration.
class LayerSamples {
 public:
  void add(const IterationTimes& times) {
    forward_.push_back(times.forward);
    backward_.push_back(times.backward);
  }
  [[nodiscard]] Figure<Seconds> forward(std::size_t layer, const std::string& source) const {
    return figure(forward_, layer, source);
  }
  [[nodiscard]] Figure<Seconds> backward(std::size_t layer, const std::string& source) const {
    return figure(backward_, layer, source);
  }

 private:
  using Passes = std::vector<std::vector<double>>;
  static Figure<Seconds> figure(const Passes& passes, std::size_t layer,
                                const std::string& source) {
    std::vector<Seconds> samples;
    for (const std::vector<double>& pass : passes) samples.emplace_back(std::max(0.0, pass[layer]));
    return median_figure(samples, Provenance::measured, source);
  }

  Passes forward_;
  Passes backward_;
};

}  // namespace

DeviceTimes measure_device(runtime::DeviceProbe& probe, const DeviceTimesRequest& request) {
  constexpr std::size_t least = 4096;
  constexpr int launches = 200;
  DeviceTimes times;
  report(request.progress, "launches", 0);
  (void)probe.time_launches(launches);
  std::vector<double> host;
  times.launch = in_seconds(repeat({.least = 30, .time = request.time * 0.05}, [&] {
    const runtime::DeviceProbe::Launch launch = probe.time_launches(launches);
    host.push_back(launch.host);
    return std::vector<double>{launch.device};
  }));
  times.host_launch = in_seconds(host);
  const std::vector<std::size_t> sizes = sizes_up_to(least, request.largest);
  const auto steps = static_cast<double>(works.size() * sizes.size());
  double done = 0;
  for (const auto& [work, type] : works) {
    WorkTimes& of_work = times.works.emplace_back(WorkTimes{work, type, {}});
    for (const std::size_t bytes : sizes) {
      report(request.progress,
             fmt::format("{} {}, {}", name(work), name(type),
                         to_text_binary(Bytes{static_cast<double>(bytes)})),
             done++ / steps);
      add_samples(of_work.samples, bytes,
                  samples_of([&](int count) { return probe.time(work, type, bytes, count); },
                             request.time * (0.95 / steps)));
    }
  }
  return times;
}

NetworkTimes measure_network(runtime::DeviceProbe& probe, const NetworkTimesRequest& request,
                             const std::string& source) {
  const std::vector<models::Layer>& layers = request.network.layers();
  const auto say = [&](const char* which, double share) {
    report(request.progress,
           fmt::format("{} at batch {}, {}: {}", request.network.name(), request.batch,
                       name(request.precision), which),
           share);
  };
  say("loading", 0);
  const std::unique_ptr<runtime::NetworkProbe> network =
      probe.load(request.network, request.batch, request.precision);
  NetworkTimes times{
      .network = request.network.name(), .precision = request.precision, .batch = request.batch};
  (void)network->time_iterations(1);  // and the one before it warm up
  say("whole iterations", 0.1);
  times.iterations =
      in_seconds(repeat({.time = request.time * 0.2}, [&] { return network->time_iterations(3); }));
  times.remark = network->remark();
  say("layers", 0.3);
  LayerSamples alone;
  times.sums = in_seconds(repeat({.time = request.time * 0.5}, [&] {
    std::vector<double> sums;
    for (const IterationTimes& iteration : network->time_layers(3)) {
      alone.add(iteration);
      times.updates.emplace_back(std::max(0.0, iteration.update));
      sums.push_back(iteration.sum());
    }
    return sums;
  }));
  for (std::size_t i = 0; i < layers.size(); ++i)
    times.layers.push_back({times.network, request.precision, request.batch, layers[i].name,
                            alone.forward(i, source), alone.backward(i, source)});

  say("layers beside traffic", 0.7);
  LayerSamples beside;
  // Layers beside traffic take longer than alone; how much longer is not known yet.
  double lasts = 4 * median(times.iterations).value();
  constexpr int tries = 3;
  const auto try_beside = [&] {
    for (int i = 0; i < tries; ++i, lasts *= 2) {
      const IterationTimes iteration = network->time_beside_traffic(1, lasts).front();
      if (!iteration.traffic_outlasted) continue;
      beside.add(iteration);
      return std::vector<double>{iteration.sum()};
    }
    return std::vector<double>{};
  };
  if (try_beside().empty()) return times;
  (void)repeat({.time = request.time * 0.3}, try_beside);
  times.traffic = network->traffic();
  const std::string source_beside = fmt::format("beside {}: {}", times.traffic, source);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    times.layers[i].forward_beside_traffic = beside.forward(i, source_beside);
    times.layers[i].backward_beside_traffic = beside.backward(i, source_beside);
  }
  return times;
}

std::vector<CollectiveTimes> measure_collectives(runtime::DeviceProbe& probe,
                                                 const CollectiveTimesRequest& request) {
  constexpr std::size_t least = 4;
  std::vector<CollectiveTimes> all;
  const int devices = probe.device().devices;
  std::vector<int> ranks;
  for (int count = 2; count < devices; count *= 2) ranks.push_back(count);
  if (devices > 1) ranks.push_back(devices);
  const std::vector<std::size_t> sizes = sizes_up_to(least, request.largest);
  // Two types of all-reduces for each number of ranks, and two patterns of messages.
  const double curves = 2 * static_cast<double>(ranks.size()) + 2;
  const Seconds each = request.time * (1 / (curves * static_cast<double>(sizes.size())));
  const auto measure = [&](CurveKind kind, models::WireType wire, int count, auto timed) {
    CollectiveTimes times{.kind = kind, .wire = wire, .ranks = count, .samples = {}};
    const std::string what = fmt::format("{} {} between {} GPUs", name(kind), name(wire), count);
    for (const std::size_t bytes : sizes) {
      report(request.progress, what, static_cast<double>(all.size()) / curves);
      add_samples(times.samples, bytes,
                  samples_of([&](int in_a_row) { return timed(bytes, in_a_row); }, each));
    }
    all.push_back(std::move(times));
  };
  for (const int count : ranks) {
    const std::unique_ptr<runtime::CollectiveProbe> collectives = probe.make_collectives(count);
    if (collectives == nullptr) return all;
    for (const NumberType type : {NumberType::fp32, NumberType::fp16})
      measure(CurveKind::all_reduce, type, count, [&](std::size_t bytes, int in_a_row) {
        return collectives->time_all_reduce(type, bytes, in_a_row);
      });
    if (count == 2)
      measure(CurveKind::point_to_point, NumberType::fp32, 2, [&](std::size_t bytes, int in_a_row) {
        return collectives->time_point_to_point(bytes, in_a_row);
      });
    if (count == devices)
      measure(CurveKind::exchange, NumberType::fp32, count, [&](std::size_t bytes, int in_a_row) {
        return collectives->time_exchange(bytes, in_a_row);
      });
  }
  return all;
}

}  // namespace paceline::calibration

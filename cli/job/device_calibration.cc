// Tests: tests/cli/cuda_calibrate_test.py (end to end).
#include "cli/job/device_calibration.h"

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "calibration/import/table_text.h"
#include "cli/job/named_things.h"
#include "cli/job/option_values.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/base/to_size.h"
#include "runtime/network/trainable_network.h"
#include "runtime/training/cuda_module.h"

namespace paceline::job {
namespace {

constexpr std::string_view default_largest = "64 MiB";
// Shares of the time. What is not asked for, or not there, leaves its time to nobody.
constexpr double device_share = 0.3;
constexpr double collective_share = 0.2;
constexpr double network_share = 0.5;

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::size_t size_of(const char* option, const std::string& text) {
  const Bytes size = parsing_option(option, [&] { return parse_bytes(text); });
  if (size < Bytes{1 << 20} || size > Bytes{1 << 30})
    throw InputError({option}, text + " is no size to calibrate a GPU with", "give 1 MiB to 1 GiB");
  return static_cast<std::size_t>(size.value());
}

template <class T>
void refuse_twice(const char* option, const std::vector<T>& values, const T& value,
                  const std::string& text) {
  if (std::find(values.begin(), values.end(), value) != values.end())
    throw InputError({option}, fmt::format("{} is there twice", in_quotes(text)),
                     "leave one of the two out");
}

std::string words_of(const CalibrationOptions& options, const std::string& device,
                     const std::string& layers) {
  std::string words = "paceline calibrate --device " + device;
  if (!layers.empty()) words += " --layers " + layers;
  if (!options.model.empty())
    words += fmt::format(" --model {} --batch {} --precision {}", options.model, options.batch,
                         options.precision);
  words += fmt::format(" --time '{}'", options.time);
  if (!options.largest.empty()) words += fmt::format(" --largest '{}'", options.largest);
  return words;
}

std::string origin_of(const DeviceCalibrationRequest& request,
                      const runtime::ProbedDevice& device) {
  return fmt::format("{}; {}, driver {}, {}{}{}, layers by {}, {}, {:%Y-%m-%dT%H:%MZ}",
                     request.command, device.description, device.driver, device.runtime,
                     device.collectives.empty() ? "" : ", ", device.collectives, device.layers,
                     host_name(), fmt::gmtime(std::time(nullptr)));
}

}  // namespace

DeviceCalibrationRequest load_device_calibration(const CalibrationOptions& options,
                                                 const std::string& device,
                                                 const std::string& layers) {
  DeviceCalibrationRequest request;
  request.device = named_device(device);
  TrainingOptions of_training;
  of_training.layers = layers;
  request.layers = named_layers(of_training, request.device);
  request.time = parsing_option("--time", [&] { return parse_seconds(options.time); });
  if (request.time < Seconds{1})
    throw InputError({"--time"}, fmt::format("{} is too short", options.time), "give at least 1 s");
  request.largest = size_of(
      "--largest", options.largest.empty() ? std::string(default_largest) : options.largest);
  request.largest_all_reduce = size_of("--largest-all-reduce", options.largest_all_reduce);
  const std::string name = calibration::printable(options.name);
  request.names = {.name = name, .cluster = name, .device = {}, .origin = {}};
  if (!options.cluster.empty()) {
    const models::Cluster cluster = load_cluster(options.cluster);
    request.names.cluster = cluster.name;
    request.names.device = cluster.device.name;
  }
  if (!options.model.empty()) {
    for (const std::string& model :
         parsing_option("--model", [&] { return comma_list(options.model); })) {
      models::Network network = load_layers(model);
      parsing_option("--model", [&] { runtime::check_trainable_on_gpus(network); });
      for (const models::Network& other : request.networks)
        if (other.name() == network.name())
          throw InputError({"--model"}, fmt::format("{} is there twice", in_quotes(network.name())),
                           "leave one of the two out");
      request.networks.push_back(std::move(network));
    }
  }
  for (const std::string& text :
       parsing_option("--batch", [&] { return comma_list(options.batch); })) {
    const int batch =
        static_cast<int>(parsing_option("--batch", [&] { return parse_count(text, 1, 1 << 20); }));
    refuse_twice("--batch", request.batches, batch, text);
    request.batches.push_back(batch);
  }
  for (const std::string& text :
       parsing_option("--precision", [&] { return comma_list(options.precision); })) {
    const models::Precision precision =
        parsing_option("--precision", [&] { return models::computed_precision_from_name(text); });
    refuse_twice("--precision", request.precisions, precision, text);
    request.precisions.push_back(precision);
  }
  request.command = words_of(options, device, layers);
  return request;
}

DeviceCalibration calibrate_device(const DeviceCalibrationRequest& request,
                                   const CalibrationProgress& progress) {
  const int index = device_of_rank(request.device, 0, runtime::cuda_devices());
  const std::unique_ptr<runtime::DeviceProbe> probe =
      runtime::load_cuda_probe(index, !request.device.index, request.layers);
  DeviceCalibration result{.device = probe->device(), .made = {}, .traffic = {}};
  calibration::ProfileNames names = request.names;
  if (names.device.empty())
    names.device = result.device.description.substr(0, result.device.description.rfind(", sm_"));
  names.origin = origin_of(request, result.device);
  calibration::DeviceMeasurements measured;
  const double settings = static_cast<double>(request.networks.size() * request.batches.size() *
                                              request.precisions.size());
  for (const models::Network& network : request.networks) {
    for (const models::Precision precision : request.precisions) {
      for (const int batch : request.batches) {
        measured.networks.push_back(
            calibration::measure_network(*probe,
                                         {.network = network,
                                          .batch = batch,
                                          .precision = precision,
                                          .time = request.time * (network_share / settings),
                                          .progress = progress},
                                         names.origin));
        if (!measured.networks.back().traffic.empty())
          result.traffic = measured.networks.back().traffic;
      }
    }
  }
  measured.device = calibration::measure_device(
      *probe,
      {.largest = request.largest, .time = request.time * device_share, .progress = progress});
  measured.collectives =
      calibration::measure_collectives(*probe, {.largest = request.largest_all_reduce,
                                                .time = request.time * collective_share,
                                                .progress = progress});
  result.made = calibration::make_device_profile(measured, names);
  const std::vector<std::string> notes = probe->notes();
  result.made.complaints.insert(result.made.complaints.begin(), notes.begin(), notes.end());
  return result;
}

}  // namespace paceline::job

// The calibration of a GPU: what its options name, and the sequence of measurements from which a
// profile is made. One process measures, with all GPUs that it can use or with one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibration/device_profile.h"
#include "cli/job/cluster_calibration.h"
#include "cli/job/training.h"
#include "runtime/probe/device_probe.h"
#include "runtime/training/cuda_module.h"

namespace paceline::job {

// Every network is measured at every batch and precision.
struct DeviceCalibrationRequest {
  NamedDevice device;
  Seconds time;                        // for everything
  std::size_t largest = 0;             // bytes of the largest work
  std::size_t largest_all_reduce = 0;  // bytes
  calibration::ProfileNames names;     // without the origin; the device's name may be empty
  std::vector<models::Network> networks;
  std::vector<int> batches;
  std::vector<models::Precision> precisions;
  runtime::CudaLayers layers;  // what computes them
  std::string command;         // for people
};

// The options are those of CalibrationOptions; of --model, --batch and --precision each may be a list
// with commas. `device` and
// `layers` are what --device and --layers say. Throws InputError that names the option or the file.
[[nodiscard]] DeviceCalibrationRequest load_device_calibration(const CalibrationOptions& options,
                                                               const std::string& device,
                                                               const std::string& layers);

struct DeviceCalibration {
  runtime::ProbedDevice device;
  calibration::DeviceProfile made;
  std::string traffic;  // beside which layers were timed; empty if none were
};

// Measures. Takes about the request's time, and more where a device is slow: every work is tried five
// times at least. Throws RunError; UnavailableError where CUDA is not installed; InputError that names
// --device if there is no such GPU.
[[nodiscard]] DeviceCalibration calibrate_device(const DeviceCalibrationRequest& request,
                                                 const CalibrationProgress& progress);

}  // namespace paceline::job

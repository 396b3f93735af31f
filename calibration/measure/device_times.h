// What a device that has a clock of its own takes: its kernels and copies by size, the layers of
// networks, and collectives between the devices of this process. All times are the probe's
// (runtime/probe/device_probe.h); here is decided what is tried, and how often (repetition.h).
#pragma once

#include <string>
#include <vector>

#include "calibration/fit/piecewise.h"
#include "calibration/measure/progress.h"
#include "models/network/network.h"
#include "models/profile/profile.h"
#include "runtime/probe/device_probe.h"

namespace paceline::calibration {

// The samples of one kind of work, by bytes.
struct WorkTimes {
  models::DeviceWork work = models::DeviceWork::copy;
  models::NumberType type = models::NumberType::fp32;
  std::vector<Sample> samples;
};

struct DeviceTimes {
  std::vector<Seconds> launch;       // from one kernel that has nothing to do to the next
  std::vector<Seconds> host_launch;  // the time that the host takes for one launch
  std::vector<WorkTimes> works;
};

struct DeviceTimesRequest {
  std::size_t largest = std::size_t{64} << 20;  // bytes, at least 4096
  Seconds time{10};                             // for all
  Progress progress = {};
};

// Copies both ways between host and device and within it, casts, sums, packing and unpacking, from 4
// KiB in powers of four up to the largest size.
[[nodiscard]] DeviceTimes measure_device(runtime::DeviceProbe& probe,
                                         const DeviceTimesRequest& request);

// A network at one batch and precision.
struct NetworkTimes {
  std::string network;
  models::Precision precision = models::Precision::fp32;
  int batch = 1;
  // With figures beside traffic where the traffic outlasted the layers.
  std::vector<models::CalibratedLayer> layers = {};
  std::vector<Seconds> updates = {};
  std::vector<Seconds> sums = {};        // of all layers and the update, one for each iteration
  std::vector<Seconds> iterations = {};  // whole ones, measured beside
  std::string remark = {};               // on how it was computed; may be empty
  std::string traffic = {};              // empty where no layers were timed beside it
};

struct NetworkTimesRequest {
  const models::Network& network;
  int batch = 1;
  models::Precision precision = models::Precision::fp32;
  Seconds time{5};  // for all
  Progress progress = {};
};

// Two iterations warm up. Then whole iterations have a fifth of the time, layers half of it, and layers
// beside traffic the rest. `source` says for people where that was.
[[nodiscard]] NetworkTimes measure_network(runtime::DeviceProbe& probe,
                                           const NetworkTimesRequest& request,
                                           const std::string& source);

// A pattern between devices of this process.
struct CollectiveTimes {
  models::CurveKind kind = models::CurveKind::all_reduce;
  models::WireType wire = models::WireType::fp32;
  int ranks = 2;
  std::vector<Sample> samples;
};

struct CollectiveTimesRequest {
  std::size_t largest = std::size_t{16} << 20;  // bytes
  Seconds time{10};                             // for all
  Progress progress = {};
};

// The library's all-reduce in FP32 and FP16 over the first 2, 4, 8, ... devices and over all, and
// messages between two and around the ring of all, in powers of four from 4 bytes on. Empty where there
// is one device, or no library.
[[nodiscard]] std::vector<CollectiveTimes> measure_collectives(
    runtime::DeviceProbe& probe, const CollectiveTimesRequest& request);

}  // namespace paceline::calibration

// A profile from what a device was measured to take (measure/device_times.h): layers and updates of
// networks, curves of its work and of collectives between the devices of one process. What is
// impossible or useless is left out (fit/acceptance.h).
#pragma once

#include <string>
#include <vector>

#include "calibration/cluster_profile.h"
#include "calibration/fit/piecewise.h"
#include "calibration/measure/device_times.h"
#include "models/profile/profile.h"

namespace paceline::calibration {

struct DeviceMeasurements {
  std::vector<NetworkTimes> networks;
  DeviceTimes device;
  std::vector<CollectiveTimes> collectives;  // by `library`
  std::string library = "nccl";
};

struct DeviceProfile {
  models::Profile profile;
  // Sentences for the user: what was left out and why, and fits that are bad.
  std::vector<std::string> complaints;
};

// Every figure is a median with its interval, or fitted (fit/statistics.h).
//
// The update of a network is taken from all its batches together. A check holds the sum of a network's
// figures against its whole iteration; it is complained of where it is more than `far_sum` off. Rates of
// copies, casts and sums are bytes over time at the largest size that was measured. Latency and
// bandwidth within a node are alpha and 1 / beta of the first and the last piece of the exchange.
//
// Left out, with a complaint: layers beside traffic that are faster than alone, or of traffic that did
// not outlast them; and figures and curves as make_profile() leaves them out.
[[nodiscard]] DeviceProfile make_device_profile(const DeviceMeasurements& measured,
                                                const ProfileNames& names);

// By how much the sum of a network's figures may be off its iteration.
inline constexpr double far_sum = 0.05;

}  // namespace paceline::calibration

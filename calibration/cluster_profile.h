// A profile from the microbenchmarks of a cluster: fits of its message times, its rates and layers.
#pragma once

#include <string>
#include <vector>

#include "calibration/fit/piecewise.h"
#include "calibration/measure/message_times.h"
#include "models/collective/program.h"
#include "models/plan/profile.h"

namespace paceline::calibration {

struct ClusterMeasurements {
  std::string transport;  // its name
  models::Segmentation segmentation;
  std::vector<MessageTimes> messages;  // without samples where they could not be taken
  std::vector<Seconds> message_gaps;
  double fairness = 0;
  std::vector<models::CalibratedRate> rates;
  std::vector<models::CalibratedLayer> layers;
};

// How the measurements were made, for people and for the profile's fields.
struct ProfileNames {
  std::string name;
  std::string cluster;
  std::string device;
  std::string origin;
};

struct ClusterProfile {
  models::Profile profile;
  std::vector<Fit> fits;                // of profile.curves, in their order
  std::vector<std::string> complaints;  // what is bad about it, each with the curve that it is of
};

// The latency and bandwidth of a link are those of its exchange: the first piece's alpha, and what
// the last one's beta makes. A gap's interval is its 5th to 95th percentile.
[[nodiscard]] ClusterProfile make_profile(const ClusterMeasurements& measured,
                                          const ProfileNames& names);

}  // namespace paceline::calibration

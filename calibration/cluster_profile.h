// A profile from the microbenchmarks of a cluster: fits of its message times, its rates and layers.
#pragma once

#include <string>
#include <vector>

#include "calibration/fit/piecewise.h"
#include "calibration/measure/message_times.h"
#include "models/collective/message_sizes.h"
#include "models/profile/profile.h"

namespace paceline::calibration {

struct ClusterMeasurements {
  std::string transport;  // its name
  models::MessageSizes message_sizes;
  std::vector<MessageTimes> messages;  // without samples where they could not be taken
  std::vector<StreamTimes> streams;
  std::vector<MessageGaps> message_gaps;  // ascending sizes; the first is the transport's
  double fairness = 0;
  std::vector<models::CalibratedRate> rates;
  std::vector<models::CalibratedLayer> layers;
  std::vector<BothWaysTimes> both_ways = {};
  std::vector<SecondsPerByte> uplink = {};
  double stated_oversubscription = 0;  // of the cluster's leaf switches; 0: nothing is stated
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

// The latency of a link is the first piece's alpha of its exchange, and its bandwidth that of its
// streams: the median, from the 5th to the 95th percentile. So are the message gap and both ways.
// The oversubscription of an uplink is a byte's time across it over the median of the streams', at
// least 1, likewise; it is complained of where it is more than 10 % off the stated one.
//
// A message's header is what messages between nodes that follow each other take beyond their bytes
// at the streams' rate: of the second size that gaps were measured of, and only where a byte more,
// up to the third size, takes what a byte of a stream does, within 20 %. Else messages wait for
// their rank and not for the link, and the gap says all there is to say.
[[nodiscard]] ClusterProfile make_profile(const ClusterMeasurements& measured,
                                          const ProfileNames& names);

}  // namespace paceline::calibration

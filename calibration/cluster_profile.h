// A profile from the microbenchmarks of a cluster: fits to its message times, and the figures of
// its links, transport, kernels and layers. What is impossible or useless is left out
// (fit/acceptance.h), so that predictions keep the cluster's own figure for it.
#pragma once

#include <string>
#include <vector>

#include "calibration/fit/piecewise.h"
#include "calibration/measure/link_figures.h"
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
  std::vector<models::CalibratedLayer> layers;  // of one network
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

// The fit to one of the measured patterns of messages, also where the profile leaves it out.
struct FittedMessages {
  Fit fit;
  std::string source;  // as the profile's curve has it
};

struct ClusterProfile {
  models::Profile profile;
  // One for each of the measurements' `messages` that has samples, in their order.
  std::vector<FittedMessages> fits;
  // Sentences for the user: what is bad about a curve that is used, and what was left out and why.
  std::vector<std::string> complaints;
};

// Every figure is a median with its interval (fit/statistics.h).
//
// The latency of a link is the alpha of the first piece of its exchange, and its bandwidth that of
// its streams. The oversubscription of an uplink is the time of a byte across it over that of a
// stream under a leaf, at least 1; its interval spans the ratios of the ends of both. It is
// complained of where it is more than 10 % off the stated one.
//
// The header of a message is what messages between nodes that follow each other take of the link
// beyond their own bytes, at the rate of streams. It is taken from the second size that gaps were
// measured of, and only where a byte more, up to the third size, takes what a byte of a stream
// does, within 20 %. Otherwise messages wait for their rank and not for the link, and the gap says
// all there is to say.
//
// Left out, with a complaint: both ways at once where it is not 1 to 2 times as long as one way,
// give or take 10 %; layers beside traffic that are faster than alone; and any figure of fewer than
// 3 samples, any curve of fewer than 5 sizes, and what is known to no better than a factor of 4
// from one end of its interval to the other. Layers are judged by the sum over the network.
[[nodiscard]] ClusterProfile make_profile(const ClusterMeasurements& measured,
                                          const ProfileNames& names);

}  // namespace paceline::calibration

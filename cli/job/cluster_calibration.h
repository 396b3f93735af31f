// The calibration of the cluster that a job runs on: what its options name, and the sequence of
// measurements from which rank 0 makes a profile.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibration/cluster_profile.h"
#include "models/base/precision.h"
#include "models/network/network.h"
#include "runtime/transport/transport.h"

namespace paceline::job {

// The options as they were typed. An empty text is an option that is not given.
struct CalibrationOptions {
  std::string name = "calibrated";
  std::string cluster;
  std::string time = "30 s";
  std::string largest;
  std::string largest_all_reduce = "16 MiB";
  std::string model;
  std::string batch = "16";
  std::string precision = "fp32";
  std::string threads = "1";
};

// What to measure. Every rank reads the options before any rank measures.
struct CalibrationRequest {
  Seconds time;  // for all messages
  std::int64_t largest =
      0;  // bytes of the largest message; 0: the largest that the transport sends
  std::int64_t largest_all_reduce =
      0;  // bytes of the largest bucket of the library's own all-reduce
  calibration::ProfileNames names;
  int nodes_per_leaf = 0;  // as in calibration::NodeMap
  // How many times the bandwidth of a leaf's uplink its nodes can send, as the cluster's file says.
  // 0 where there is no uplink, and where nodes have several NICs: the first ranks, which measure,
  // may use one of them or all.
  double stated_oversubscription = 0;
  std::optional<models::Network> network;  // whose layers are timed
  int batch = 1;                           // samples of a rank, of that network
  models::Precision precision = models::Precision::fp32;
  int threads = 1;  // that compute, per rank
};

// Throws InputError that names the option or the file.
[[nodiscard]] CalibrationRequest load_calibration(const CalibrationOptions& options);

struct ClusterCalibration {
  calibration::ClusterProfile made;
  std::vector<calibration::MessageTimes> messages;
  double nic_sharing =
      0;  // how much longer a byte takes while all ranks of a node send; 0: unknown
};

// Says what is measured now, and which share of this kind of measurement is done, from 0 to 1.
using CalibrationProgress = std::function<void(const std::string& what, double share)>;

// Measures, together with all other ranks of the transport. Rank 0 gets the calibration; the others
// get nothing. Takes the request's time, a fifth more with a network, and some seconds. Throws
// RunError.
[[nodiscard]] std::optional<ClusterCalibration> calibrate(const CalibrationRequest& request,
                                                          runtime::Transport& transport,
                                                          const CalibrationProgress& progress);

}  // namespace paceline::job

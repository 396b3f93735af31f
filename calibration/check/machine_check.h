// Compares what a topology shows of a machine with what its cluster should have.
#pragma once

#include <string>
#include <vector>

#include "calibration/check/evidence.h"
#include "models/cluster/cluster.h"

namespace paceline::calibration {

struct MachineDifferences {
  std::vector<std::string> texts;  // "GPU2 has no NVLink, where others have some"
  models::Cluster cluster;         // as the machine is, where that changes what is predicted
  bool changes_links = false;
};

// Throws InputError where the machine is another one: its GPUs are of another kind.
[[nodiscard]] MachineDifferences differences(const models::Cluster& cluster,
                                             const SeenMachine& seen);

}  // namespace paceline::calibration

// The options that say how a strategy fuses gradients and which numbers its all-reduce takes:
// --theta, --eta, --group, --segments, --rings, --servers, --streams; and what other systems do:
// --cycle, --horovod, --partition, --credit, --host-copies, --server-machines, --server-transport; and
// what K-FAC does: --factors-every.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "simulator/planner/thresholds.h"

namespace paceline::job {

// As typed; an empty text is an option that is not given.
struct ThresholdOptions {
  std::string theta;
  std::string eta;
  std::string group;
  std::string segments;
  std::string rings;
  std::string servers;
  std::string streams;
  std::string cycle;
  std::string horovod;
  std::string partition;
  std::string credit;
  bool host_copies = false;
  std::string server_machines;
  std::string server_transport;
  std::string factors_every;
};

// The names of the fields that are given (simulator/planner/threshold_fields.h), and their texts; a
// flag's is empty.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> given_thresholds(
    const ThresholdOptions& options);

// The thresholds that are given. Throws InputError that names the option.
[[nodiscard]] simulator::ThresholdRequest parse_thresholds(const ThresholdOptions& options);

}  // namespace paceline::job

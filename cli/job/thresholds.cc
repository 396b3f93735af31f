// Tests: tests/cli (end to end).
#include "cli/job/thresholds.h"

#include "cli/job/option_values.h"
#include "models/base/parse_units.h"
#include "models/collective/algorithms.h"

namespace paceline::job {
namespace {

// At most so many buckets may travel at the same time.
constexpr int max_streams = 1024;

}  // namespace

simulator::ThresholdRequest parse_thresholds(const ThresholdOptions& options) {
  simulator::ThresholdRequest request;
  if (!options.theta.empty())
    request.fusion = parsing_option("--theta", [&] { return parse_bytes(options.theta); });
  if (!options.eta.empty())
    request.hybrid = parsing_option("--eta", [&] { return parse_bytes(options.eta); });
  request.group_size = optional_count("--group", options.group, models::max_ranks);
  request.segments = optional_count("--segments", options.segments, models::max_segments);
  request.rings = optional_count("--rings", options.rings, models::max_ranks);
  request.servers = optional_count("--servers", options.servers, models::max_ranks);
  request.streams = optional_count("--streams", options.streams, max_streams);
  return request;
}

}  // namespace paceline::job

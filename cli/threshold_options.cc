// Tests: tests/cli (end to end).
#include "cli/threshold_options.h"

#include <fmt/format.h>

#include "cli/job.h"
#include "models/base/parse_units.h"
#include "models/collective/algorithms.h"

namespace paceline::cli {
namespace {

// Buckets that may travel at the same time, at most.
constexpr int max_streams = 1024;

}  // namespace

void add_threshold_options(Command& command, ThresholdOptions& options,
                           const ThresholdDefaults& defaults) {
  command
      .add_option("--theta", options.theta,
                  "Fusion threshold on the wire: a bucket is sent once it holds this much")
      .value(fmt::format("SIZE ({})", defaults.theta));
  command
      .add_option("--eta", options.eta,
                  "Hybrid threshold on the wire: hierarchical up to it, ring above")
      .value(fmt::format("SIZE ({})", defaults.eta));
  command
      .add_option("--group", options.group,
                  "Group size k of hierarchical all-reduce; must divide the ranks")
      .value(fmt::format("K ({})", defaults.group));
  command
      .add_option("--segments", options.segments,
                  "Segments of a bucket that travel one behind the other in trees")
      .value(fmt::format("S ({})", defaults.segments));
  command.add_option("--rings", options.rings, "Rings of multi-ring").value("C (4)");
  command.add_option("--servers", options.servers, "Parameter servers among the ranks")
      .value(fmt::format("S ({})", defaults.servers));
  command.add_option("--streams", options.streams, "Buckets that may travel at the same time")
      .value("N (1)");
}

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

}  // namespace paceline::cli

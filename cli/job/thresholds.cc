// Tests: tests/cli (end to end).
#include "cli/job/thresholds.h"

#include <fmt/core.h>

#include "cli/job/option_values.h"
#include "models/base/parse_units.h"
#include "models/collective/algorithms.h"

namespace paceline::job {
namespace {

// At most so many buckets may travel at the same time.
constexpr int max_streams = 1024;
constexpr Seconds shortest_cycle{1e-6};
constexpr Seconds longest_cycle{60};

Seconds parse_cycle(const std::string& text) {
  const Seconds cycle = parse_seconds(text);
  if (cycle > longest_cycle)
    throw InputError(fmt::format("a cycle of {}", to_text(cycle)),
                     fmt::format("choose at most {}", to_text(longest_cycle)));
  if (cycle > Seconds{0} && cycle < shortest_cycle)
    throw InputError(fmt::format("a cycle of {}", to_text(cycle)),
                     fmt::format("choose 0 for none, or at least {}", to_text(shortest_cycle)));
  return cycle;
}

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
  if (!options.cycle.empty())
    request.cycle = parsing_option("--cycle", [&] { return parse_cycle(options.cycle); });
  if (!options.horovod.empty())
    request.horovod =
        parsing_option("--horovod", [&] { return models::horovod_defaults(options.horovod); });
  if (!options.partition.empty())
    request.partition =
        parsing_option("--partition", [&] { return parse_bytes(options.partition); });
  if (!options.credit.empty())
    request.credit = parsing_option("--credit", [&] { return parse_bytes(options.credit); });
  request.through_host = options.host_copies;
  request.server_machines =
      optional_count("--server-machines", options.server_machines, models::most_servers);
  if (request.server_machines && request.servers)
    throw InputError({"--server-machines"}, "servers are on machines of their own or of workers",
                     "leave --servers or --server-machines out");
  request.factors_every =
      optional_count("--factors-every", options.factors_every, models::most_factors_every);
  if (!options.server_transport.empty())
    request.transport = parsing_option("--server-transport", [&] {
      return models::server_transport_from_name(options.server_transport);
    });
  return request;
}

}  // namespace paceline::job

// Tests: tests/cli (end to end).
#include "cli/job/schedule.h"

#include "cli/job/option_values.h"
#include "models/base/parse_units.h"
#include "models/collective/algorithms.h"

namespace paceline::job {

NamedSchedule load_schedule(const models::CollectiveAlgorithm& algorithm,
                            const ScheduleOptions& options, int most_ranks) {
  require_option(options.ranks, "--ranks", "24");
  models::ScheduleOptions build;
  build.ranks = static_cast<int>(
      parsing_option("--ranks", [&] { return parse_count(options.ranks, 1, most_ranks); }));
  build.group_size = optional_count("--group", options.group, most_ranks).value_or(0);
  build.segments = optional_count("--segments", options.segments, models::max_segments).value_or(0);
  build.rings = optional_count("--rings", options.rings, most_ranks).value_or(0);
  build.servers = optional_count("--servers", options.servers, most_ranks).value_or(0);
  const char* blamed = algorithm.takes_segments                          ? "--segments"
                       : algorithm.takes_servers                         ? "--servers"
                       : algorithm.takes_rings && !options.rings.empty() ? "--rings"
                                                                         : "--group";
  build = models::taken_options(algorithm, build);
  return {algorithm, build, parsing_option(blamed, [&] { return algorithm.build(build); })};
}

}  // namespace paceline::job

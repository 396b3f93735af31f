// Tests: tests/cli (end to end).
#include "cli/job/schedule.h"

#include <fmt/core.h>

#include "cli/job/option_values.h"
#include "models/base/parse_units.h"
#include "models/collective/algorithms.h"

namespace paceline::job {
namespace {

struct TakenOption {
  const char* name;
  std::string ScheduleOptions::*text;
  bool models::CollectiveAlgorithm::*is_taken;
};

constexpr TakenOption taken_by_some[] = {
    {"--group", &ScheduleOptions::group, &models::CollectiveAlgorithm::takes_group},
    {"--segments", &ScheduleOptions::segments, &models::CollectiveAlgorithm::takes_segments},
    {"--rings", &ScheduleOptions::rings, &models::CollectiveAlgorithm::takes_rings},
    {"--servers", &ScheduleOptions::servers, &models::CollectiveAlgorithm::takes_servers}};

// A schedule that takes the option.
std::string_view taker(const TakenOption& option) {
  for (const models::CollectiveAlgorithm& algorithm : models::all_reduce_catalogue())
    if (algorithm.*option.is_taken) return algorithm.name;
  return "another one";
}

}  // namespace

void check_taken(const ScheduleOptions& options, const models::CollectiveAlgorithm* algorithm,
                 std::string_view name) {
  for (const TakenOption& option : taken_by_some) {
    const bool is_taken = algorithm != nullptr && algorithm->*option.is_taken;
    if (is_taken || (options.*option.text).empty()) continue;
    throw InputError({option.name}, fmt::format("{} does not take it", name),
                     fmt::format("leave it out, or choose a schedule such as {}", taker(option)));
  }
}

NamedSchedule load_schedule(const models::CollectiveAlgorithm& algorithm,
                            const ScheduleOptions& options, int most_ranks) {
  require_option(options.ranks, "--ranks", "24");
  check_taken(options, &algorithm, algorithm.name);
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

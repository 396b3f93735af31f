// The options that name a schedule, and mean the same in every command.
#pragma once

#include <string>

#include "cli/command_line.h"
#include "models/collective/catalogue.h"

namespace paceline::cli {

// As typed; empty is "not given".
struct ScheduleOptions {
  std::string ranks;
  std::string group;
  std::string segments;
  std::string rings;
  std::string servers;
};

// Declares --ranks, --group, --segments, --rings and --servers. `options` must outlive the parse.
void add_schedule_options(Command& command, ScheduleOptions& options);

struct NamedSchedule {
  const models::CollectiveAlgorithm& algorithm;
  models::ScheduleOptions options;
  models::Schedule schedule;
};

// That algorithm as the options say. Throws InputError that names the option.
[[nodiscard]] NamedSchedule load_schedule(const models::CollectiveAlgorithm& algorithm,
                                          const ScheduleOptions& options,
                                          int most_ranks = models::max_ranks);

}  // namespace paceline::cli

// The options that name a schedule, and mean the same in every command.
#pragma once

#include <string>

#include "models/collective/catalogue.h"

namespace paceline::job {

// As typed; an empty text is an option that is not given.
struct ScheduleOptions {
  std::string ranks;
  std::string group;
  std::string segments;
  std::string rings;
  std::string servers;
};

struct NamedSchedule {
  const models::CollectiveAlgorithm& algorithm;
  models::ScheduleOptions options;
  models::Schedule schedule;
};

// The schedule that the algorithm makes with these options. Throws InputError that names the
// option.
[[nodiscard]] NamedSchedule load_schedule(const models::CollectiveAlgorithm& algorithm,
                                          const ScheduleOptions& options,
                                          int most_ranks = models::max_ranks);

}  // namespace paceline::job

// The options that name a schedule, and mean the same in every command.
#pragma once

#include <string>
#include <string_view>

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

// Refuses an option that is given and that the algorithm does not take. `algorithm` is null for a
// library's own all-reduce, which takes none; `name` is what the user called it. Throws InputError that
// names the option.
void check_taken(const ScheduleOptions& options, const models::CollectiveAlgorithm* algorithm,
                 std::string_view name);

// The schedule that the algorithm makes with these options. Throws InputError that names the
// option, also where the algorithm does not take it.
[[nodiscard]] NamedSchedule load_schedule(const models::CollectiveAlgorithm& algorithm,
                                          const ScheduleOptions& options,
                                          int most_ranks = models::max_ranks);

}  // namespace paceline::job

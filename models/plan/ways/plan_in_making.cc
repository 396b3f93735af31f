// Tests: tests/models/strategy_test.cc.
#include "models/plan/ways/plan_in_making.h"

#include <algorithm>
#include <utility>

#include "models/base/to_size.h"

namespace paceline::models {

int PlanInMaking::place_of(PlannedSchedule schedule) {
  const auto found = std::find(plan.schedules.begin(), plan.schedules.end(), schedule);
  const auto place = static_cast<int>(found - plan.schedules.begin());
  if (found == plan.schedules.end()) plan.schedules.push_back(std::move(schedule));
  return place;
}

int PlanInMaking::place_of(std::string_view algorithm, const ScheduleOptions& wanted) {
  const ScheduleOptions options = taken_options(all_reduce_algorithm(algorithm), wanted);
  for (std::size_t i = 0; i < plan.schedules.size(); ++i) {
    if (plan.schedules[i].algorithm == algorithm && plan.schedules[i].options == options)
      return static_cast<int>(i);
  }
  return place_of(scheduled(algorithm, options));
}

int PlanInMaking::next_server(std::int64_t elements, ServerPlacement placement) {
  held_.resize(to_size(thresholds.servers));
  const std::size_t server =
      placement == ServerPlacement::round_robin
          ? placed_++ % held_.size()
          : to_size(std::min_element(held_.begin(), held_.end()) - held_.begin());
  held_[server] += elements;
  return static_cast<int>(server);
}

}  // namespace paceline::models

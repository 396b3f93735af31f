// Tests: tests/simulator/fastest_all_reduce_test.cc.
#include "simulator/planner/fastest_all_reduce.h"

#include <algorithm>
#include <numeric>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/collective/catalogue.h"
#include "simulator/engine/effort.h"
#include "simulator/engine/prepare.h"

namespace paceline::simulator {
namespace {

std::vector<int> divisors(int of) {
  std::vector<int> all;
  for (int k = 1; k <= of; ++k)
    if (of % k == 0) all.push_back(k);
  return all;
}

constexpr double never = 1e300;

std::vector<double> times_by_steps(std::span<const models::PlannedSchedule> schedules, Bytes bytes,
                                   BucketTimer timer) {
  std::vector<double> times_s;
  for (const models::PlannedSchedule& schedule : schedules) {
    try {
      times_s.push_back(timer.time(schedule, bytes).value());
    } catch (const TooManyMessages&) {
      times_s.push_back(never);
    }
  }
  return times_s;
}

// What differs by rounding is equal, so that the choice does not jump between sizes.
std::size_t first_of_least(const std::vector<double>& times_s) {
  constexpr double rounding = 1 + 1e-4;
  const double limit_s = rounding * *std::min_element(times_s.begin(), times_s.end());
  const auto first = std::find_if(times_s.begin(), times_s.end(),
                                  [&](double time_s) { return time_s <= limit_s; });
  return to_size(first - times_s.begin());
}

}  // namespace

std::vector<models::ScheduleOptions> candidate_options(const models::CollectiveAlgorithm& algorithm,
                                                       const models::ScheduleOptions& asked,
                                                       int ranks_per_node) {
  std::vector<models::ScheduleOptions> all = {models::taken_options(algorithm, asked)};
  const auto vary = [&](int models::ScheduleOptions::*option, const std::vector<int>& values) {
    if (asked.*option != 0) return;
    std::vector<models::ScheduleOptions> varied;
    for (const models::ScheduleOptions& options : all)
      for (const int value : values) {
        varied.push_back(options);
        varied.back().*option = value;
      }
    all = std::move(varied);
  };
  if (algorithm.takes_group) {
    std::vector<int> groups = divisors(asked.ranks);
    // Rings are laid through groups that share a switch or a node.
    if (algorithm.takes_rings) std::erase_if(groups, [&](int k) { return k > ranks_per_node; });
    vary(&models::ScheduleOptions::group_size, groups);
  }
  if (algorithm.takes_segments)
    vary(&models::ScheduleOptions::segments, {1, 2, 4, 8, 16, 32, 64, 128, 256});
  if (algorithm.takes_rings) vary(&models::ScheduleOptions::rings, {1, 2, 4, 8});
  if (algorithm.takes_servers)
    vary(&models::ScheduleOptions::servers, {(asked.ranks - 1) / ranks_per_node + 1});
  return all;
}

std::vector<models::PlannedSchedule> candidate_schedules(std::string_view algorithm,
                                                         const models::ScheduleOptions& asked,
                                                         const CommunicationCost& cost,
                                                         double most_prepared) {
  const models::CollectiveAlgorithm& entry = models::collective_algorithm(algorithm);
  const std::vector<models::ScheduleOptions> all =
      candidate_options(entry, asked, cost.ranks_per_node);
  if (all.size() == 1) return {models::scheduled(entry.name, all.front())};
  std::vector<models::PlannedSchedule> schedules;
  for (const models::ScheduleOptions& options : all) {
    try {
      models::PlannedSchedule schedule = models::scheduled(entry.name, options);
      if (options.segments == 0 && followed_messages(schedule.schedule(), cost) > most_prepared)
        continue;
      schedules.push_back(std::move(schedule));
    } catch (const InputError&) {
      // The algorithm has no schedule for these options.
    }
  }
  if (schedules.empty())
    schedules.push_back(models::scheduled(entry.name, models::taken_options(entry, asked)));
  return schedules;
}

std::size_t fastest_of(std::span<const models::PlannedSchedule> schedules, Bytes bytes,
                       const PlanningTimers& timers, double most_followed) {
  if (schedules.size() == 1) return 0;
  const std::vector<double> by_steps_s = times_by_steps(schedules, bytes, timers.search);
  if (!timers.timed) return first_of_least(by_steps_s);
  std::vector<std::size_t> order(schedules.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return by_steps_s[a] < by_steps_s[b]; });
  constexpr double at_least = 0.5;  // of the step engine's time, by any other engine
  std::vector<double> times_s(schedules.size(), never);
  double best_s = never;
  double followed = 0;
  for (const std::size_t i : order) {
    if (by_steps_s[i] == never || at_least * by_steps_s[i] >= best_s) break;
    times_s[i] = by_steps_s[i];
    if (!timers.timed->is_by_steps(schedules[i])) {
      followed += followed_messages(schedules[i].schedule(), timers.search.cost());
      if (followed > most_followed) return first_of_least(by_steps_s);
      times_s[i] = timers.timed->time(schedules[i], bytes).value();
    }
    best_s = std::min(best_s, times_s[i]);
  }
  return first_of_least(times_s);
}

}  // namespace paceline::simulator

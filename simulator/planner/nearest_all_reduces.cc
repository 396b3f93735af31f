// Tests: tests/simulator/alternatives_test.cc, tests/simulator/plan_search_test.cc.
#include "simulator/planner/nearest_all_reduces.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/base/error.h"
#include "models/collective/catalogue.h"

namespace paceline::simulator {
namespace {

using Timed = std::pair<double, const models::PlannedSchedule*>;

// Adds an all-reduce to the `count` ones with the least times so far, in order of their times.
void keep(std::vector<Timed>& nearest, const Timed& other, std::size_t count) {
  nearest.push_back(other);
  std::stable_sort(nearest.begin(), nearest.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (nearest.size() > count) nearest.pop_back();
}

}  // namespace

NearestAllReduces::NearestAllReduces(const PlanningJob& job, const PlanningTimers& timers,
                                     std::span<const std::string> only)
    : job_(job), timers_(timers) {
  const CommunicationCost& cost = timers.search.cost();
  for (const CandidateOptions& options : catalogue_options(job.ranks, cost.ranks_per_node, only))
    entries_.push_back(
        {options, least_in_form(options.algorithm->name, options.options, cost), {}, {}});
}

NearestAllReduces::Others NearestAllReduces::beside(const models::PlannedSchedule& own, Bytes bytes,
                                                    std::size_t count) {
  const double own_s = timers_.search.time(own, bytes).value();
  Others others;
  const auto is_alike = [&](const models::PlannedSchedule& other, double time_s) {
    constexpr double rounding = 1e-9;
    if (std::abs(time_s - own_s) > rounding * own_s) return false;
    others.alike.push_back(models::described(other));
    return true;
  };
  others.nearest = nearest(bytes, count, [&](const models::PlannedSchedule& other, double time_s) {
    return other == own || is_alike(other, time_s);
  });
  return others;
}

std::vector<const models::PlannedSchedule*> NearestAllReduces::fastest(Bytes bytes,
                                                                       std::size_t count) {
  return nearest(bytes, count, [](const models::PlannedSchedule&, double) { return false; });
}

std::vector<const models::PlannedSchedule*> NearestAllReduces::nearest(Bytes bytes,
                                                                       std::size_t count,
                                                                       const Skips& skips) {
  std::vector<std::pair<double, std::size_t>> by_bound;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    by_bound.emplace_back(entries_[i].least ? entries_[i].least->at(bytes.value()) : 0, i);
  std::sort(by_bound.begin(), by_bound.end());
  std::vector<Timed> nearest;
  for (const auto& [bound_s, i] : by_bound) {
    if (nearest.size() == count && bound_s > nearest.back().first) break;
    const models::PlannedSchedule* other = usable(entries_[i]);
    if (other == nullptr) continue;
    const double time_s = timers_.search.time(*other, bytes).value();
    if (!skips(*other, time_s)) keep(nearest, {time_s, other}, count);
  }
  std::vector<const models::PlannedSchedule*> found;
  for (const auto& [time_s, schedule] : nearest) found.push_back(schedule);
  return found;
}

const models::PlannedSchedule* NearestAllReduces::usable(Entry& entry) {
  if (!entry.is_built) {
    entry.is_built = true;
    try {
      models::PlannedSchedule schedule =
          models::scheduled(entry.options.algorithm->name, entry.options.options);
      if (!has_too_many_messages(schedule, job_, timers_)) entry.schedule = std::move(schedule);
    } catch (const InputError&) {
      // The algorithm has no schedule for these options.
    }
  }
  return entry.schedule ? &*entry.schedule : nullptr;
}

}  // namespace paceline::simulator

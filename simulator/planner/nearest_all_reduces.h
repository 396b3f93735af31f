// The all-reduces that are nearest to the fastest one of a size, by the step engine.
//
// They are those of catalogue_options() (candidates.h), except for those with too many messages. An
// all-reduce is built once its lower bound (least_in_form()) does not rule it out.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "simulator/planner/candidates.h"
#include "simulator/planner/planning_job.h"

namespace paceline::simulator {

class NearestAllReduces {
 public:
  // Keeps references to the job and the timers. Of the algorithms that `only` names, or of any where it
  // is empty.
  NearestAllReduces(const PlanningJob& job, const PlanningTimers& timers,
                    std::span<const std::string> only);

  struct Others {
    std::vector<const models::PlannedSchedule*> nearest;  // that are not as fast, fastest first
    std::vector<std::string> alike;                       // that are as fast, in words
  };
  // At most `count` all-reduces beside the given one for buckets of `bytes`.
  [[nodiscard]] Others beside(const models::PlannedSchedule& own, Bytes bytes, std::size_t count);
  // The `count` fastest ones for buckets of `bytes`, fastest first.
  [[nodiscard]] std::vector<const models::PlannedSchedule*> fastest(Bytes bytes, std::size_t count);

 private:
  struct Entry {
    CandidateOptions options;
    std::optional<SizeCurve::Piece> least;
    std::optional<models::PlannedSchedule> schedule;  // once it is built, if it can be used
    bool is_built = false;
  };
  using Skips = std::function<bool(const models::PlannedSchedule& other, double time_s)>;
  [[nodiscard]] std::vector<const models::PlannedSchedule*> nearest(Bytes bytes, std::size_t count,
                                                                    const Skips& skips);
  const models::PlannedSchedule* usable(Entry& entry);

  const PlanningJob& job_;
  const PlanningTimers& timers_;
  std::vector<Entry> entries_;
};

}  // namespace paceline::simulator

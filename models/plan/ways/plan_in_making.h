// A plan while make_plan() adds its buckets, one after the other. Ways to travel use it (traits.h).
#pragma once

#include <cstdint>
#include <vector>

#include "models/plan/plan.h"
#include "models/plan/thresholds.h"

namespace paceline::models {

class PlanInMaking {
 public:
  PlanInMaking(Plan& made, const Thresholds& chosen, std::int64_t of_network)
      : plan(made), thresholds(chosen), gradients(of_network) {}

  Plan& plan;
  const Thresholds& thresholds;
  std::int64_t gradients;  // of the network

  // The options of an algorithm that the thresholds name.
  [[nodiscard]] ScheduleOptions options() const {
    return {.ranks = plan.ranks,
            .group_size = thresholds.group_size,
            .segments = thresholds.segments,
            .rings = thresholds.rings,
            .servers = 1};
  }

  // The place of the schedule among the plan's, where it is added if it is not there yet.
  int place_of(PlannedSchedule schedule);
  // The same for an entry of the catalogue.
  int place_of(std::string_view algorithm, const ScheduleOptions& wanted);
  // The server of the next bucket.
  int next_server(std::int64_t elements, ServerPlacement placement);

 private:
  std::vector<std::int64_t> held_;  // elements, by each server
  std::size_t placed_ = 0;
};

}  // namespace paceline::models

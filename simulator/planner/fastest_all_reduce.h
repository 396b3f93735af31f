// The parameters of one all-reduce of a known size that nobody named: k, segments, rings, servers.
//
// They are chosen among those with which tune's candidates (candidates.h) try the algorithm.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "models/plan/plan.h"
#include "simulator/planner/planning_job.h"

namespace paceline::simulator {

// The options with which a planner tries an algorithm on nodes of `ranks_per_node` ranks: every
// divisor of the ranks as k (of rings, up to a node's ranks), segments by powers of two up to 256,
// 1 to 8 rings, one server for each node. Options of `asked` that are not 0 stay as they are.
[[nodiscard]] std::vector<models::ScheduleOptions> candidate_options(
    const models::CollectiveAlgorithm& algorithm, const models::ScheduleOptions& asked,
    int ranks_per_node);

// The schedules of these options. Of several, those are left out that the algorithm does not build,
// and those of more than `most_prepared` messages; where none remains, there is that of the
// catalogue's defaults. Throws InputError if that cannot be built.
[[nodiscard]] std::vector<models::PlannedSchedule> candidate_schedules(
    std::string_view algorithm, const models::ScheduleOptions& asked, const CommunicationCost& cost,
    double most_prepared);

// The index of the schedule with which an all-reduce of `bytes` is fastest by `timers.timed`, the
// first of those within 0.01 %. What takes more than twice as long by the step engine as the best is
// ruled out. Where the other engine would follow more than `most_followed` messages for the rest, the
// step engine decides alone. At least one schedule.
[[nodiscard]] std::size_t fastest_of(std::span<const models::PlannedSchedule> schedules,
                                     Bytes bytes, const PlanningTimers& timers,
                                     double most_followed);

}  // namespace paceline::simulator

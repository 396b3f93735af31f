// Every all-reduce that a planner may give a bucket, with its time by size.
//
// Candidates are the all-reduces of the catalogue with the options of candidate_options()
// (fastest_all_reduce.h), or a library's own all-reduce by itself, because a library sums all buckets of
// a plan or none. The least of their curves is what the recurrence of optimal_fusion.h takes.
//
// What is exact: where the step engine times a candidate, its curve is exact to 1e-9 (size_curve.h), and
// one is left out only where its supporting lines at both ends of the sizes are above the least curve
// everywhere. Where another engine times it, the curve joins samples, and one is left out where a lower
// bound of that engine's time is above the least curve: of the flow engine, the step engine's time where
// only messages that start together share a link (Load::alike, engine/step_program.h); of others, which
// have no bound, half of it. Candidates with more than
// `most_followed` messages for such an engine are left out.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/collective/catalogue.h"
#include "models/plan/plan.h"
#include "simulator/planner/planning_job.h"
#include "simulator/planner/size_curve.h"

namespace paceline::simulator {

struct Candidates {
  std::vector<models::PlannedSchedule> schedules;  // `which` of the curve is an index
  SizeCurve least;
  int tried = 0;         // candidates with a curve, and those that were ruled out
  bool is_exact = true;  // all of those that were tried
  std::optional<models::Library> library = {};  // the only candidate, where it is a library's own
  std::vector<std::string> left_out;            // in words: "hierarchical k=512"
};

// An all-reduce that a bucket could take, before it is built.
struct CandidateOptions {
  const models::CollectiveAlgorithm* algorithm = nullptr;
  models::ScheduleOptions options = {};
};

// Those of the algorithms that `only` names, or of all of them where it is empty. For some options the
// algorithm's build() throws InputError.
[[nodiscard]] std::vector<CandidateOptions> catalogue_options(
    int ranks, int ranks_per_node, std::span<const std::string> only = {});

// Whether it is left out, because an engine would prepare or follow more messages than the job allows.
[[nodiscard]] bool has_too_many_messages(const models::PlannedSchedule& schedule,
                                         const PlanningJob& job, const PlanningTimers& timers);

// A lower bound for the time of an all-reduce, as one line: its closed form with the least latency and
// the least time for a byte of any link. It holds where ranks have one port each, because the engine
// equals the form where all links are alike (models/collective/closed_form.h), and slower links only
// add. Nothing where ranks have more ports, where links are not known by latency and bandwidth, or
// where there is no closed form.
[[nodiscard]] std::optional<SizeCurve::Piece> least_in_form(std::string_view algorithm,
                                                            const models::ScheduleOptions& options,
                                                            const CommunicationCost& cost);

// For all sizes of buckets of the job, of the algorithms that `only` names, or of all of them where it
// is empty; or of the library whose name is the only one in `only`, which the timers know. The timers may
// be one. Throws InputError if none of these is defined for the job's ranks.
[[nodiscard]] Candidates make_candidates(const PlanningJob& job, const PlanningTimers& timers,
                                         std::span<const std::string> only = {});

// A lower bound for the time of an all-reduce by any schedule, whatever it is made of, as one line: one
// latency, and the bytes that have to leave some rank or some node (traffic_bound.h; Patarasuk & Yuan
// 2009). 0 for a cluster that a platform file describes, and for a transport that was calibrated.
[[nodiscard]] SizeCurve::Piece least_time_of_any(const CommunicationCost& cost, int ranks);

}  // namespace paceline::simulator

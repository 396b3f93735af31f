// What a plan would lose by each of the choices in it that could be otherwise: the next best all-reduce
// of a bucket, a merge with the bucket behind it, a cut in two, and an end one gradient earlier or
// later. All other buckets stay as they are.
//
// Where the planner's clock is the DAG (stream_clock.h), a change costs O(1) beside the times of its
// all-reduces: the state of the stream before the change is known, and what comes after it is a maximum
// of two sums. With a state (f, B) before the rest of the buckets, the update starts at
//   max(f + S, c B + R),  S_i = stream_i + S_i+1,  R_i = max(ready_i + S_i, R_i+1 + c traffic_i),
// where S is 0 and R is the end of the backward pass after the last bucket. Elsewhere the DAG judges.
//
// The next best all-reduce is the fastest by the step engine of all that a bucket could take and that
// are slower than its own; where another engine times it, the best of the three that are nearest by
// the step engine. A merge, a cut, and a moved end have the best all-reduces by the planner's curve,
// and the cut is where the planner's clock has it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/network/work.h"
#include "models/plan/plan.h"
#include "simulator/iteration/tuning_job.h"
#include "simulator/planner/candidates.h"

namespace paceline::simulator {

enum class ChangeKind { all_reduce, merged, cut, ends_earlier, ends_later };

// For documents: "all-reduce", "merged", "cut", "ends-earlier", "ends-later".
[[nodiscard]] std::string_view name(ChangeKind kind);

// Buckets in the place of one or two neighbours. They hold the same gradients.
struct PlanChange {
  struct Part {
    int gradients = 0;
    models::PlannedSchedule all_reduce;
  };
  ChangeKind kind = ChangeKind::all_reduce;
  int bucket = 0;    // the first that changes
  int replaced = 1;  // buckets, from that one on
  std::vector<Part> parts;
};

// The plan with the change, of models::strategy_of() its all-reduces. Its buckets hold whole gradients.
[[nodiscard]] models::Plan changed(const models::Plan& plan, const PlanChange& change,
                                   const std::vector<models::Gradient>& gradients);

struct Alternative {
  PlanChange change;
  Seconds period;  // of the changed plan, as Predictor::predict() has it
  // Other all-reduces that take as long as the plan's own for this bucket, in words; only of
  // ChangeKind::all_reduce.
  std::vector<std::string> alike = {};
};

// The changes of each bucket of a plan, those with the shortest period first. A change of two buckets
// counts as a change of the first of them. All-reduces use the algorithms that `only` names, or any if
// it is empty, as the candidates do. `stop`, if given, is asked before each bucket; the buckets that are
// left then have no changes. Empty for one rank, and for plans whose buckets are anything but
// all-reduces of whole gradients, by a schedule or by the library of the candidates.
[[nodiscard]] std::vector<std::vector<Alternative>> alternatives(const TuningJob& job,
                                                                 const Candidates& candidates,
                                                                 const models::Plan& plan,
                                                                 std::span<const std::string> only,
                                                                 const std::function<bool()>& stop);

}  // namespace paceline::simulator

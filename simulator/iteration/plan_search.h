// A search for buckets and all-reduces where no recurrence is exact (tuned_plan.h).
//
// It descends: of the plans that differ from the current one by a move, the first that the DAG judges to
// be better by more than 1e-6 is the next. A move is
//   another all-reduce for one bucket, or one for all buckets
//   the end of a bucket, 1, 2, 4 or 8 gradients earlier or later
//   a bucket merged with the next one, or cut in two
// A bucket whose gradients change keeps its all-reduce or takes one of the fastest for its new size; the
// all-reduces that it may take are the fastest ones of its size by the step engine, and those of the
// other buckets. Plans are judged in the order of a clock that costs O(buckets): each bucket as long as
// if it were alone, streams by turns, and bytes behind one another. Those that lose twice as much by that
// clock as the current plan are not judged, and none is judged twice.
//
// The order is fixed, so that a search that is not stopped always finds the same plan.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "models/plan/plan.h"
#include "simulator/iteration/tuning_job.h"
#include "simulator/planner/candidates.h"
#include "simulator/planner/interval_cost.h"
#include "simulator/planner/nearest_all_reduces.h"

namespace paceline::simulator {

class PlanSearch {
 public:
  struct Judge {
    std::function<Seconds(const models::Plan&)> period;  // by the DAG
    std::function<bool()> is_over;                       // asked before each plan
  };
  // Keeps references to the job and the candidates. No plan has a period below `least`.
  PlanSearch(const TuningJob& job, const Candidates& candidates, std::span<const std::string> only,
             Seconds least, Judge judge);

  // The plan of these buckets, `ends` as in FusionOptimum, with the candidate that is fastest by the
  // planner's curve for each.
  [[nodiscard]] models::Plan plan_of_ends(const std::vector<int>& ends) const;

  void descend_from(const std::vector<int>& ends);
  // Does nothing for plans of other overlap or streams, or whose buckets are not whole gradients that
  // candidates sum.
  void descend_from(const models::Plan& plan);
  // From the best cut into 1 to 16 buckets of about equal sizes. Buckets that travel together hide each
  // other's latency, so that more of them may be better than one stream's optimum has.
  void descend_from_even_cuts();
  // From plans that are some moves away from the best so far, which are drawn by a fixed seed.
  void escape();

 private:
  // A plan as the search moves it: ends of buckets, and the all-reduce of each.
  struct Cut {
    std::vector<int> ends;
    std::vector<int> which;  // indices of all_reduces_
    auto operator<=>(const Cut&) const = default;
  };
  struct Move {
    double estimate_s;
    Cut cut;
  };

  [[nodiscard]] models::Plan plan_of(const Cut& cut) const;
  [[nodiscard]] Cut with_candidates(const std::vector<int>& ends) const;
  [[nodiscard]] std::vector<int> even_ends(int buckets) const;
  [[nodiscard]] std::int64_t elements(int first, int end) const;
  int index_of(const models::PlannedSchedule& all_reduce);
  const std::vector<int>& choices(int first, int end);
  double alone_s(int which, std::int64_t elements);
  [[nodiscard]] double estimate_s(const Cut& cut);
  double judge(const Cut& cut);
  void descend(Cut cut);
  std::vector<Cut> neighbours(const Cut& cut);
  void add_all_reduces(const Cut& cut, std::size_t bucket, std::set<Cut>& found);
  void add_ends(const Cut& cut, std::size_t bucket, std::set<Cut>& found);
  void add_merged(const Cut& cut, std::size_t bucket, std::set<Cut>& found);
  void add_cuts(const Cut& cut, std::size_t bucket, std::set<Cut>& found);

  const TuningJob& job_;
  Seconds least_;
  Judge judge_;
  std::optional<models::Library> library_;  // that sums all buckets
  std::vector<std::int64_t> sums_;
  double element_bytes_;
  IntervalCost cost_;
  NearestAllReduces nearest_;
  std::vector<const models::PlannedSchedule*> all_reduces_;        // the candidates, then others
  std::vector<std::unordered_map<std::int64_t, double>> alone_s_;  // of each, by elements
  std::map<std::int64_t, std::vector<int>> choices_;               // by elements, fastest first
  std::map<Cut, double> judged_s_;
  Cut best_;
  double best_s_ = 1e300;
};

}  // namespace paceline::simulator

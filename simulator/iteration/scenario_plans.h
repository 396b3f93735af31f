// The plan that would be tuned if the world were in one sampled state (sampled_interval.h): computation
// and links that are so slow, ranks that wait so long for the slowest, collectives that cost this much.
//
// In a state, an all-reduce takes its stated time and this many times the way to its time at the fast or
// the slow end of all links, as its sampled interval has it; of each size, the best all-reduce of either
// end and of the stated figures. The recurrence of optimal_fusion.h then cuts the buckets. All times are
// the step engine's: such plans are candidates, which another clock judges.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "simulator/iteration/sampled_interval.h"
#include "simulator/planner/candidates.h"
#include "simulator/planner/interval_cost.h"

namespace paceline::simulator {

// A job at one bound of the figures.
struct ReadJob {
  PlanningJob planning;
  PlanningTimers timers;
};

class ScenarioPlanner {
 public:
  // Plans have the ranks, wire type, overlap and streams of `like`. They use the algorithms that `only`
  // names, or any if it is empty. `world` holds the stated figures.
  ScenarioPlanner(const models::Plan& like, const ReadJob& stated, const ReadJob& fast,
                  const ReadJob& slow, const SampledScenario& world,
                  std::span<const std::string> only);
  // O(gradients^2), as often as the frontier of states is long.
  [[nodiscard]] models::Plan plan_of(const SampledScenario& world) const;

 private:
  struct Costs {
    Costs(const std::vector<std::int64_t>& sums, double element_bytes, const ReadJob& job,
          std::span<const std::string> only)
        : candidates(make_candidates(job.planning, job.timers, only)),
          sums_(&sums),
          element_bytes_(element_bytes),
          aside_(job.planning.aside),
          slows_(job.planning.slows) {}
    // With the times of all-reduces as their traffic.
    [[nodiscard]] IntervalCost cost() const {
      return {*sums_, element_bytes_, candidates.least, aside_, slows_};
    }
    Candidates candidates;

   private:
    const std::vector<std::int64_t>* sums_;
    double element_bytes_;
    BucketAside aside_;
    bool slows_;
  };

  const models::Plan& like_;
  const models::NetworkWork& network_;
  double element_bytes_;
  StreamClock clock_;
  SampledScenario stated_scenario_;
  std::vector<std::int64_t> sums_;
  Costs stated_;
  Costs fast_;
  Costs slow_;
};

}  // namespace paceline::simulator

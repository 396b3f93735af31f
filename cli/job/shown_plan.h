// Plans of strategies with when each of their buckets travels: what `paceline show plan` prints, and the
// buckets of a plan as documents have them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/job/job.h"
#include "models/base/document.h"
#include "models/network/work.h"
#include "simulator/iteration/alternatives.h"
#include "simulator/iteration/bucket_travel.h"

namespace paceline::job {

// The time that each bucket of a plan would lose by other choices.
struct OtherChoices {
  std::vector<std::vector<simulator::Alternative>>
      of_buckets;           // empty where nothing could be tried
  bool is_complete = true;  // false: time was over before all was tried
};

struct ShownPlan {
  std::string name;  // of its strategy
  models::Plan plan;
  simulator::PlanTravel travel;
  std::string timed_by;  // as in simulator::StrategyPrediction
  std::optional<OtherChoices> others = {};
};

// The buckets of a plan. `others`, what each would lose by other choices, may be shorter than the plan.
struct PlannedBuckets {
  const models::Plan& plan;
  const models::NetworkWork& network;
  const simulator::PlanTravel& travel;
  std::span<const std::vector<simulator::Alternative>> others = {};
};
// The array `buckets` of documents (docs/formats.md).
[[nodiscard]] const Document<PlannedBuckets>& buckets_document();

// Plans of the job's network.
struct ShownPlans {
  const Job& job;
  const LoadedNetwork& network;
  int ranks;
  std::span<const ShownPlan> plans;
};
[[nodiscard]] const Document<ShownPlans>& plan_travel_document();

}  // namespace paceline::job

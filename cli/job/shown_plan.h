// Plans of strategies with when each of their buckets travels: what `paceline show plan` prints, and the
// buckets of a plan as documents have them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/job/job.h"
#include "models/base/json.h"
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

// The array `buckets` of documents (docs/formats.md). `others` may be shorter than the plan.
[[nodiscard]] Json buckets_json(const models::Plan& plan, const models::NetworkWork& network,
                                const simulator::PlanTravel& travel,
                                std::span<const std::vector<simulator::Alternative>> others);

// The document of plans of the job's network.
[[nodiscard]] std::string to_json(const Job& job, const LoadedNetwork& network, int ranks,
                                  std::span<const ShownPlan> plans);

}  // namespace paceline::job

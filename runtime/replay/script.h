// What the ranks of a replay run, as rank 0 tells them: plans one behind the other, and how long the
// layers sleep.
#pragma once

#include <string>
#include <vector>

#include "models/network/work.h"
#include "models/plan/plan.h"
#include "runtime/replay/replay.h"

namespace paceline::runtime {

struct ReplayScript {
  std::vector<models::Plan> plans;
  std::vector<LayerDuration> layers;  // one for each of the network's
  Seconds update;
};

// One line of JSON for the ranks of the same job: plans as documents (models/plan/plan_json.h),
// durations in seconds.
[[nodiscard]] std::string to_json(const ReplayScript& script, const models::NetworkWork& network);

// Reads it. Throws InputError where a plan is not for this network and these ranks: a rank that was
// given another network must not run it.
[[nodiscard]] ReplayScript parse_replay_script(const std::string& text,
                                               const models::NetworkWork& network, int ranks);

}  // namespace paceline::runtime

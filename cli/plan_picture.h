// A plan as a picture (SVG): the layers on the compute stream, when the gradients of each bucket are
// there, when the buckets travel, and where the compute stream stands still for them.
#pragma once

#include <string>

#include "models/network/work.h"
#include "models/plan/plan.h"
#include "simulator/iteration/bucket_travel.h"

namespace paceline::cli {

// The plan's travel is of one iteration, whose figures are predicted. `title` and `facts` are one
// line each. The picture needs no script and no other file, and follows the reader's choice of light
// or dark.
[[nodiscard]] std::string plan_svg(const std::string& title, const std::string& facts,
                                   const models::NetworkWork& network, const models::Plan& plan,
                                   const simulator::PlanTravel& travel);

}  // namespace paceline::cli

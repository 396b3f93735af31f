// The job that a plan is made for, in the plan's document.
#pragma once

#include "cli/job/job.h"
#include "models/plan/plan_json.h"

namespace paceline::job {

// The document of a plan that was made for this network of the job.
[[nodiscard]] models::PlanDocument plan_document(const models::Plan& plan, const Job& job,
                                                 const models::NetworkWork& network);

}  // namespace paceline::job

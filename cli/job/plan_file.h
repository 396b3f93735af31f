// The files of --plan and --plan-out: a plan as a document (models/plan/plan_json.h).
#pragma once

#include <string>
#include <vector>

#include "models/plan/plan_json.h"

namespace paceline::job {

// Refuses options that --plan takes the place of, if any of them is given. Throws InputError that names
// the first.
void refuse_beside_plan(const std::vector<std::string>& given);

// Refuses a plan that our runtime cannot run. Throws InputError that names `source`, an option or a
// file.
void refuse_of_other_system(const models::Plan& plan, const char* source);

// The plan in a file. Throws InputError as models::parse_plan does. Whether it fits the job is
// models::check_plan's question.
[[nodiscard]] models::PlanDocument read_plan(const std::string& path);

// Writes the document to a file. Throws RunError.
void write_plan(const std::string& path, const models::PlanDocument& document);

}  // namespace paceline::job

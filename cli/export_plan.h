// The half of paceline export that takes a plan document.
#pragma once

#include <string>

#include "cli/job/files.h"
#include "cli/job/plan_export.h"

namespace paceline::cli {

// Prints the plan as the format, or writes it to `output` where that is not empty, and says in a line
// each on standard error what the format cannot say of the plan. Throws InputError and RunError.
void export_plan(const job::PlanExportOptions& options, const std::string& format,
                 const std::string& output, job::Replace replace);

}  // namespace paceline::cli

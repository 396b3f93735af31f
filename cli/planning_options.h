// Declarations of the options that plan-capacity and exports of plans have in the command and in Python.
#pragma once

#include "cli/command_line.h"
#include "cli/job/capacity.h"
#include "cli/job/plan_export.h"

namespace paceline::cli {

// Candidates, limits and the training run.
void add_capacity_options(Command& command, job::CapacityOptions& capacity);
// What is predicted for the export of a plan, apart from --cluster, which schedules take, too.
void add_plan_export_options(Command& command, job::PlanExportOptions& plan);

}  // namespace paceline::cli

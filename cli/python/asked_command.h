// The commands that Python calls, with their options, as the command line declares them: keywords are
// their names.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "cli/command_line.h"
#include "cli/job/capacity.h"
#include "cli/job/plan_export.h"
#include "cli/job/proof.h"
#include "cli/job/robust_tuning.h"
#include "cli/job/time_table.h"
#include "cli/job/training_run.h"
#include "cli/job/tuning.h"
#include "cli/job/what_if.h"
#include "simulator/question/question.h"

namespace paceline::python {

inline constexpr std::array<std::string_view, 9> asked_commands = {
    "predict", "scale", "tune", "cost", "time", "verify", "compare", "plan-capacity", "export"};

// One of them, and what its options are read into.
struct AskedCommand {
  // `name` is of asked_commands.
  explicit AskedCommand(std::string_view name);
  AskedCommand(const AskedCommand&) = delete;
  AskedCommand& operator=(const AskedCommand&) = delete;

  cli::Command command;
  simulator::Question question;  // of predict, scale, tune and cost
  bool sensitivity = false;
  std::string measured;  // of scale
  job::TuningOptions tuning;
  job::RobustOptions robust;
  bool why = false;
  job::TrainingRunOptions run;  // of cost
  job::TimeOptions time;
  job::ProofOptions proof;
  job::WhatIfOptions what_if;  // of compare
  job::CapacityOptions capacity;
  job::PlanExportOptions plan_export;
};

}  // namespace paceline::python

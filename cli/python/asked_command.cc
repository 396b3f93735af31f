// Tests: tests/python/test_options.py.
#include "cli/python/asked_command.h"

#include "cli/planning_options.h"
#include "cli/shared_options.h"
#include "cli/training_run_options.h"

namespace paceline::python {

AskedCommand::AskedCommand(std::string_view name) : command(std::string(name), "") {
  if (name == "time") {
    add_time_options(command, time);
  } else if (name == "verify") {
    add_proof_options(command, proof);
  } else if (name == "compare") {
    add_question_options(command, what_if);
  } else if (name == "plan-capacity") {
    add_capacity_options(command, capacity);
  } else if (name == "export") {
    command.add_option("--cluster", plan_export.cluster, "Cluster that the plan is for");
    add_plan_export_options(command, plan_export);
  } else {
    add_job_options(command, question);
    add_field(command, question, "ignore-memory");
    if (name == "scale") {
      add_field(command, question, "ranks");
    } else {
      add_size_options(command, question);
    }
    if (name == "predict" || name == "scale")
      add_fields(command, question, {"baseline", "what-if"});
  }
  if (name == "predict") {
    add_straggler_options(command, question);
    add_field(command, question, "plan");
    command.add_flag("--sensitivity", sensitivity,
                     "Also say what the fastest row would gain by better NICs, links, or devices");
  }
  if (name == "cost") {
    add_training_run_options(command, run);
    add_node_price_option(command, run);
    add_node_power_option(command, run);
    add_field(command, question, "plan");
  }
  if (name == "scale") add_measured_throughputs_option(command, measured);
  if (name == "tune") {
    add_tuning_options(command, tuning, why);
    add_robust_options(command, robust);
  }
}

}  // namespace paceline::python

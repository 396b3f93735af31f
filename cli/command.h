// One function for each command of the program. Each declares a command with its options below
// `app`, and what it does: the work, and printing to stdout. Errors are exceptions; main.cc turns
// them into exit codes.
#pragma once

#include <memory>

#include "cli/command_line.h"

namespace paceline::cli {

void add_predict(Command& app);
void add_scale(Command& app);
void add_sweep(Command& app);
void add_time(Command& app);
void add_show(Command& app);
void add_show_dag(Command& show);        // called by add_show
void add_show_plan(Command& show);       // called by add_show
void add_show_schedules(Command& show);  // likewise
void add_show_clusters(Command& show);   // likewise
void add_show_recipes(Command& show);    // likewise
void add_show_schema(Command& show);     // likewise
void add_show_nccl(Command& show);       // likewise
void add_calibrate(Command& app);
void add_calibrate_cluster(Command& calibrate);  // called by add_calibrate
void add_calibrate_import(Command& calibrate);   // likewise
void add_tune(Command& app);
void add_replay(Command& app);
void add_train(Command& app);
void add_verify(Command& app);
void add_export(Command& app);
void add_platform(Command& app);
void add_reproduce(Command& app);
void add_agree(Command& app);
void add_check(Command& app);
void add_compare(Command& app);
void add_cost(Command& app);
void add_plan_capacity(Command& app);
void add_doctor(Command& app);
void add_serve(Command& app);
void add_completion(Command& app);
void add_manual(Command& app);

}  // namespace paceline::cli

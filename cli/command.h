// One function for each verb of the command. Each declares its options on a new subcommand of
// `app` and a callback that does the work and prints to stdout. Errors are exceptions; main.cc
// turns them into exit codes.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

namespace paceline::cli {

void add_predict(CLI::App& app);
void add_scale(CLI::App& app);
void add_show(CLI::App& app);
void add_show_plan(CLI::App& show);       // called by add_show
void add_show_schedules(CLI::App& show);  // likewise
void add_show_recipes(CLI::App& show);    // likewise
void add_show_nccl(CLI::App& show);       // likewise
void add_calibrate(CLI::App& app);
void add_calibrate_cluster(CLI::App& calibrate);  // called by add_calibrate
void add_replay(CLI::App& app);
void add_train(CLI::App& app);
void add_verify(CLI::App& app);
void add_export(CLI::App& app);
void add_platform(CLI::App& app);
void add_reproduce(CLI::App& app);
void add_agree(CLI::App& app);
void add_completion(CLI::App& app);

}  // namespace paceline::cli

// Declarations of the options that mean the same in several commands, and of those that Python takes. What they name is loaded by
// cli/job. What is declared to write to must outlive the parse.
#pragma once

#include <string>

#include "cli/command_line.h"
#include "cli/job/job.h"
#include "cli/job/proof.h"
#include "cli/job/ranks.h"
#include "cli/job/robust_tuning.h"
#include "cli/job/schedule.h"
#include "cli/job/stragglers.h"
#include "cli/job/time_table.h"
#include "cli/job/tuning.h"
#include "cli/job/what_if.h"

namespace paceline::cli {

// What models of other systems take: --others, --cycle, --horovod, --partition, --credit,
// --host-copies, --server-machines, --server-transport and --factors-every.
void add_system_options(Command& command, job::JobOptions& options);

// The options of a job, without --ranks, which means different things in different commands.
void add_job_options(Command& command, job::JobOptions& options);
// Those of them that mean the same where a command compares clusters and batches: all but --model,
// --cluster, --placement, --nic, --batch, --accumulate and --strategy.
void add_prediction_options(Command& command, job::JobOptions& options);

// Declares --sequence.
void add_sequence_option(Command& command, std::string& sequence);

void add_placement_option(Command& command, std::string& placement);
void add_engine_option(Command& command, std::string& engine);
// --nccl, the version of NCCL's tables.
void add_nccl_option(Command& command, std::string& version);
void add_profile_option(Command& command, std::string& profile);

// What a command takes where a threshold is not given, in the words of its help.
struct ThresholdDefaults {
  const char* theta;
  const char* eta;
  const char* group;
  const char* segments;
  const char* servers;
};

// --theta, --eta, --group, --segments, --rings, --servers and --streams.
void add_threshold_options(Command& command, job::ThresholdOptions& options,
                           const ThresholdDefaults& defaults);

// Declares --ignore-memory.
void add_memory_option(Command& command, bool& ignore_memory);

// Declares --what-if of a prediction.
void add_what_if_option(Command& command, std::string& what_if);
// Declares --plan, on a command whose ranks are one number.
void add_plan_option(Command& command, std::string& plan);
// Declares --baseline.
void add_baseline_option(Command& command, std::string& baseline);

// --spread and --slow-rank.
void add_rank_options(Command& command, job::StragglerOptions& options);
// These, --slow-node, --backup, --iterations and --seed.
void add_straggler_options(Command& command, job::StragglerOptions& options);

// --ranks, --group, --segments, --rings and --servers of one schedule.
void add_schedule_options(Command& command, job::ScheduleOptions& options);

// --measured of scale.
void add_measured_throughputs_option(Command& command, std::string& measured);

// The options of tune: --all-reduce, --time-limit and --why.
void add_tuning_options(Command& command, job::TuningOptions& options, bool& why);
// The options of its robust mode: --robust, --default, --spread, --slow-rank and --seed.
void add_robust_options(Command& command, job::RobustOptions& options);

// --plan, --what-if, and what only questions of --what-if of compare take.
void add_question_options(Command& command, job::WhatIfOptions& options);

// All options of time and of verify but those that say how it is printed.
void add_time_options(Command& command, job::TimeOptions& options);
void add_proof_options(Command& command, job::ProofOptions& options);

// --wide, for commands whose tables are cut to table_width().
void add_wide_option(Command& command, bool& wide);

// --top, as typed; and the number of rows that it says, 0 where it is not given. Throws InputError.
void add_top_option(
    Command& command, std::string& top,
    const char* help =
        "Print the N fastest strategies, the fastest first; --json and --csv have all");
[[nodiscard]] std::size_t parse_top(const std::string& top);

void add_patience_option(Command& command, std::string& patience);

}  // namespace paceline::cli

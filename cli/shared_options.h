// Declarations of the options that mean the same in several commands, and of those that Python takes. What they name is loaded by
// cli/job. What is declared to write to must outlive the parse.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "cli/command_line.h"
#include "cli/job/job.h"
#include "cli/job/proof.h"
#include "cli/job/ranks.h"
#include "cli/job/robust_tuning.h"
#include "cli/job/schedule.h"
#include "cli/job/time_table.h"
#include "cli/job/tuning.h"
#include "cli/job/what_if.h"
#include "simulator/question/question_fields.h"

namespace paceline::cli {

// The option of a question's field, which is read into the question.
Option& add_field(Command& command, simulator::Question& question, std::string_view name);
void add_fields(Command& command, simulator::Question& question,
                std::initializer_list<std::string_view> names);
// The same for a command that has no question: the text as typed.
void add_field_text(Command& command, std::string& text, std::string_view name);

// The options of a job, without --ranks, which means different things in different commands.
void add_job_options(Command& command, simulator::Question& question);
// Those of them that mean the same where a command compares clusters and batches: all but those of
// simulator::job_group.
void add_prediction_options(Command& command, simulator::Question& question);
// --ranks, as one number, or --nodes.
void add_size_options(Command& command, simulator::Question& question);
// --spread, --slow-rank, --slow-node, --backup, --iterations and --seed.
void add_straggler_options(Command& command, simulator::Question& question);

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

// --provenance of predict and scale.
void add_provenance_option(Command& command, bool& provenance);

// --top, as typed; and the number of rows that it says, 0 where it is not given. Throws InputError.
void add_top_option(Command& command, std::string& top,
                    const char* help = "Print the N fastest strategies; --json and --csv have all");
[[nodiscard]] std::size_t parse_top(const std::string& top);

void add_patience_option(Command& command, std::string& patience);

}  // namespace paceline::cli

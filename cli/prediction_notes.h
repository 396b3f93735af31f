// Notes under tables of predictions: what was left out or timed otherwise, and what the figures rest on.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/job/prediction_table.h"

namespace paceline::cli {

// A line on each strategy that the step engine timed in place of the flow engine, or that is left
// out: why, and which option asks for it. Strategies of several tables are named once, with the
// numbers of ranks. Empty where there is none.
[[nodiscard]] std::string time_budget_note(std::span<const job::PredictionTable> tables);

// A line for each strategy whose all-reduces a library timed, and what that rests on; where that differs
// between the tables, a line for each, with their numbers of ranks. Empty where there is none.
[[nodiscard]] std::string library_note(std::span<const job::PredictionTable> tables);

// What the figures of the job's cluster and profile rest on: one line each, by provenance.
[[nodiscard]] std::string basis_text(const job::Job& job);
// What times rest on: where computation comes from and how many figures there are of each provenance, or
// with `all` each of them.
[[nodiscard]] std::string basis_note(const job::Job& job, std::string_view compute_source,
                                     bool all);

// A line for the rows that better links may make slower, where the question is about better links; else empty.
[[nodiscard]] std::string links_note(const job::PredictionTable& table);

}  // namespace paceline::cli

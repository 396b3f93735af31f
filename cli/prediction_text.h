// Predictions as people read them: tables with notes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/job/prediction_table.h"

namespace paceline::cli {

// The table and its notes. The table is at most `width` columns wide; what it leaves out for that
// is named below it. It has the `top` fastest strategies, the fastest first, or where that is 0 all
// of them.
[[nodiscard]] std::string to_text(const job::PredictionTable& table, int width, std::size_t top = 0,
                                  bool provenance = false);

// The table alone, in Markdown.
[[nodiscard]] std::string to_markdown(const job::PredictionTable& table, std::size_t top = 0);

// How long an iteration takes in each row: the mean where there are stragglers.
[[nodiscard]] std::vector<Seconds> iterations_of(const job::PredictionTable& table);

// The rows of a table that is not yet complete, under their titles.
[[nodiscard]] std::string rows_text(const job::Job& job,
                                    std::span<const simulator::StrategyPrediction> rows, int width);

// A line for each option that changes every row: --overlap, --scale-gradients, --exact-compute,
// --engine. Empty where none is given.
[[nodiscard]] std::string setting_text(const job::Job& job);

// Whose a batch is: "per rank", or "per group of 8 ranks" where these work on one sample.
[[nodiscard]] std::string per_ranks(const models::Layout& layout);

}  // namespace paceline::cli

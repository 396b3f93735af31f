// Scaling curves as people read them.
#pragma once

#include <span>
#include <string>

#include "cli/job/prediction_table.h"

namespace paceline::cli {

// A line for each number of ranks, a column for each strategy and wire type of the job, in blocks of at
// most `width` columns.
[[nodiscard]] std::string points_text(const job::Job& job,
                                      std::span<const job::PredictionTable> tables, int width);
// The same as one table of Markdown.
[[nodiscard]] std::string points_markdown(const job::Job& job,
                                          std::span<const job::PredictionTable> tables);

// What `paceline scale` prints: the points, and what they rest on. There is at least one table.
[[nodiscard]] std::string curve_text(const job::Job& job,
                                     std::span<const job::PredictionTable> tables, int width);

}  // namespace paceline::cli

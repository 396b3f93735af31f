// Scaling curves as people read them.
#pragma once

#include <span>
#include <string>

#include "cli/job/prediction_table.h"

namespace paceline::cli {

// A line for each number of ranks, a column for each strategy and wire type of the job, in blocks of at
// most `width` columns: for the `top` fastest ones with the most ranks, or where that is 0 all of them.
[[nodiscard]] std::string points_text(const job::Job& job,
                                      std::span<const job::PredictionTable> tables, int width,
                                      std::size_t top = 0);
// The same as one table of Markdown.
[[nodiscard]] std::string points_markdown(const job::Job& job,
                                          std::span<const job::PredictionTable> tables,
                                          std::size_t top = 0);

// Returns the text that `paceline scale` prints: the points, and what they rest on. There is at least
// one table.
[[nodiscard]] std::string curve_text(const job::Job& job,
                                     std::span<const job::PredictionTable> tables, int width,
                                     std::size_t top = 0, bool provenance = false);

}  // namespace paceline::cli

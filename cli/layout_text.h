// The table of `paceline tune --layouts`.
#pragma once

#include <span>
#include <string>

#include "cli/job/layout_tuning.h"
#include "cli/table.h"

namespace paceline::cli {

// Layouts as a table, the fastest with a star where `has_best`.
[[nodiscard]] Table layout_table(std::span<const job::LayoutRow> rows, int ranks, bool has_best);

[[nodiscard]] std::string to_text(const job::LayoutTuning& tuning, int width);
[[nodiscard]] std::string to_markdown(const job::LayoutTuning& tuning);

}  // namespace paceline::cli

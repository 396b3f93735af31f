// Times of single all-reduces as people read them.
#pragma once

#include <string>

#include "cli/job/time_table.h"
#include "cli/table.h"

namespace paceline::cli {

// The table alone: what was measured beside its prediction, where there is any; else a row for each size
// of the one algorithm, or of all of them. With `top`, that of all algorithms has the fastest ones of
// each size only; 0 shows all.
[[nodiscard]] Table table_of(const job::TimeTable& table, const job::TimeOptions& options,
                             std::size_t top = 0);
// The table in at most `width` columns, and notes.
[[nodiscard]] std::string to_text(const job::TimeTable& table, const job::TimeOptions& options,
                                  int width, std::size_t top = 0);

}  // namespace paceline::cli

// What a training run takes, as people read it.
#pragma once

#include <string>

#include "cli/job/cost_table.h"

namespace paceline::cli {

// The table, at most `width` columns wide, and its notes.
[[nodiscard]] std::string to_text(const job::CostTable& table, int width);

}  // namespace paceline::cli

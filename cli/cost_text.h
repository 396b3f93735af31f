// What a training run takes, as people read it.
#pragma once

#include <string>

#include "cli/job/cost_table.h"

namespace paceline::cli {

// A long time in the unit that suits it: "29.87 min".
[[nodiscard]] std::string clock_text(Seconds time);
// Its interval: "21.53 - 51.07 min".
[[nodiscard]] std::string clock_interval_text(const Figure<Seconds>& time);

// What price and power of the cluster rest on: one line each.
[[nodiscard]] std::string expenses_basis(const models::Cluster& cluster);

// The table, at most `width` columns wide, and its notes.
[[nodiscard]] std::string to_text(const job::CostTable& table, int width);
// The table alone, in Markdown.
[[nodiscard]] std::string to_markdown(const job::CostTable& table);

}  // namespace paceline::cli

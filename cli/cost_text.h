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

// The table, at most `width` columns wide, and its notes. It has the `top` strategies that train in
// the shortest time, the shortest first, or where that is 0 all of them.
[[nodiscard]] std::string to_text(const job::CostTable& table, int width, std::size_t top = 0);
// The table alone, in Markdown.
[[nodiscard]] std::string to_markdown(const job::CostTable& table, std::size_t top = 0);

}  // namespace paceline::cli

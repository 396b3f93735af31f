// Candidates to train on, as people read them.
#pragma once

#include <string>

#include "cli/job/capacity.h"

namespace paceline::cli {

// The answer, the front (or all candidates where nothing has a price) in at most `width` columns,
// and notes. With `top`, this many of these candidates: the answer, and the cheapest where the cheapest
// is asked for, else the fastest. 0 shows all.
[[nodiscard]] std::string to_text(const job::Capacity& capacity, int width, std::size_t top = 0);
// The candidates alone, in Markdown.
[[nodiscard]] std::string to_markdown(const job::Capacity& capacity, std::size_t top = 0);

// "cheapest within 12 h", "fastest for at most 500 USD at an efficiency of 90.0 % or more".
[[nodiscard]] std::string asked_text(const job::Capacity& capacity);
// The candidate that misses least, in words; needs one.
[[nodiscard]] std::string nearest_text(const job::Capacity& capacity);

}  // namespace paceline::cli

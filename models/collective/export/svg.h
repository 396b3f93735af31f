// A schedule as a picture: who talks to whom in each step, for papers and slides.
#pragma once

#include <string>
#include <string_view>

#include "models/collective/schedule.h"

namespace paceline::models {

// Limits up to which a picture is legible on a page.
struct SvgLimits {
  static constexpr int ranks = 64;
  static constexpr int columns = 64;
  static constexpr int arrows = 20'000;
};

// An SVG 1.1 document. Ranks are lines from left to right, steps are columns; an arrow goes from
// who sends to who receives, with a full head where the message is added to what the receiver holds
// and an open one where it takes its place. Above a column stands the step, below it the size of
// its messages as a part of the bucket's n bytes. Three or more steps in a row with the same
// partners and sizes (Schedule::repeats) are one column, marked with their number.
// `name` stands in the title, `collective` below it. Throws InputError for one rank, and beyond
// SvgLimits; the message says what.
[[nodiscard]] std::string svg(const Schedule& schedule, std::string_view name,
                              std::string_view collective);

}  // namespace paceline::models

// Draws predictions over what was published, by source, for people: SVG.
#pragma once

#include <span>
#include <string>

#include "experiments/published/result.h"

namespace paceline::experiments {

// A strip for each source, and for small and large single all-reduces apart. Every predicted row is
// a point where the speed that is predicted stands over the published one, on a logarithmic axis from
// a quarter to four times (what is beyond stands at its end), with a bar over its interval. Points
// whose published value is inside the interval are full and blue, others hollow and red. A black
// mark is the median of the strip, whose number of rows, median of absolute errors and share inside
// stand beside it. Rows of which either value is not above 0 are left out. The same rows give the same
// text. O(rows).
[[nodiscard]] std::string published_svg(std::span<const Reproduction> sources);

}  // namespace paceline::experiments

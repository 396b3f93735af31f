// Draws predictions over what was published, for people: SVG.
#pragma once

#include <span>
#include <string>

#include "experiments/published/result.h"

namespace paceline::experiments {

// Every predicted row is a point at its published value and ours, in the row's unit on two
// logarithmic axes, with a bar over its interval; each source has a colour. Round points are rows
// of training, squares single all-reduces; points whose published value is inside the interval are
// full. On the line in the middle ours is what was published; the dashed ones are 10 % off. A
// legend has the number of rows, the median of absolute errors and the share inside of each source.
// Rows of which either value is not above 0 are left out. The same rows give the same text.
// O(rows).
[[nodiscard]] std::string published_svg(std::span<const Reproduction> sources);

}  // namespace paceline::experiments

// A schedule as text for people: what each rank sends in each step.
#pragma once

#include <string>

#include "models/collective/schedule.h"

namespace paceline::models {

struct DrawOptions {
  int most_ranks = 16;  // columns of the grid; a line says how many ranks are left out beyond that
  int most_steps = 64;
};

// A grid with one row for each step and one column for each rank. A cell "c2+>1" is: chunk 2 goes
// to rank 1 and is added there; "c0-3>5": chunks 0 to 3 go to rank 5 and replace what it holds.
// The bucket is cut into the least number of chunks that no message divides.
[[nodiscard]] std::string draw(const Schedule& schedule, const DrawOptions& options = {});

}  // namespace paceline::models

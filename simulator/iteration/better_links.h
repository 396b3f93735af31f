// Whether better links can make a row of a table slower.
//
// On one in-order stream they cannot: the recurrence of simulator/planner/stream_clock.h grows with the
// time of each all-reduce, no schedule takes longer on better links, and the planner takes the best
// thresholds on that clock to 0.1 %, or to 0.3 % where the flow engine times what the step engine's times
// have found. Rows of other kinds say why theirs may.
#pragma once

#include <string>

#include "models/plan/plan.h"
#include "simulator/iteration/timing_method.h"

namespace paceline::simulator {

// Why the iteration may be longer by more than 0.1 % where links are better, as the rest of a sentence:
// "its buckets travel together"; empty where it may not.
[[nodiscard]] std::string why_better_links_may_slow(const models::Plan& plan,
                                                    const TimingMethod& method,
                                                    bool by_library_model);

}  // namespace paceline::simulator

// The best theta, of all that make different buckets.
//
// A runtime that is driven by theta closes a bucket as soon as it holds theta bytes or more
// (models/plan/strategy.h). All theta between one outcome's and the size of its least closed bucket
// make the same buckets, so that outcomes can be listed one after the other; at most O(L^2) sizes end
// one. The search does not list them all: a range of theta makes no buckets but those that hold at
// least its low end, and less than its high end without their last gradient. The recurrence over these
// buckets is a lower bound for the range (least_done_s), and ranges that cannot be better than the
// best by more than `tolerance` are not looked into. With a tolerance of 0 the result is the optimum.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulator/planner/interval_cost.h"

namespace paceline::simulator {

// The buckets of one theta, in elements: it is reached with this many.
struct ThetaOutcome {
  std::int64_t elements = 0;  // the least theta that was tried with this outcome
  std::int64_t up_to = 0;     // all theta from `elements` to this have it
  double done_s = 0;          // when the update starts
  std::vector<int> ends;      // as in FusionOptimum
};

[[nodiscard]] ThetaOutcome outcome_of_theta(const StreamClock& clock,
                                            const std::vector<std::int64_t>& sums,
                                            const IntervalCost& cost, std::int64_t theta_elements);

struct ThetaSearch {
  ThetaOutcome best;
  double least_done_s = 0;  // no theta's update starts earlier than this
  int tried = 0;            // outcomes
  bool is_complete = true;  // false: `most_tried` were
};

// `tried` are outcomes to begin with, such as those of round theta; it may be empty. `update_s` of the
// clock counts for what `tolerance` is relative to. `least_done_s` is when the update starts at the
// earliest with any contiguous buckets, where that is known.
[[nodiscard]] ThetaSearch best_theta(const StreamClock& clock,
                                     const std::vector<std::int64_t>& sums,
                                     const IntervalCost& cost, double tolerance,
                                     const std::vector<ThetaOutcome>& tried = {},
                                     int most_tried = 20'000,
                                     std::optional<double> least_done_s = {});

// The roundest number of bytes that reaches more than `below` elements and at most `up_to`, of
// `element_bytes` each: a multiple of as large a power of two as there is.
[[nodiscard]] double round_theta_bytes(std::int64_t elements, std::int64_t up_to,
                                       double element_bytes);

}  // namespace paceline::simulator

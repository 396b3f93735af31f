// The choice among clusters that could train the same: which of them are worth looking at, and which
// one does what is asked.
//
// A candidate is dominated if another is at least as fast and at least as cheap, and one of the two
// more so. The Pareto front has those that are not dominated, each of which is the best for somebody;
// candidates that take and cost the same are all on it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "models/base/expense_units.h"
#include "models/base/figure.h"
#include "models/base/units.h"

namespace paceline::simulator {

// What a candidate takes to train.
struct Outcome {
  Figure<Seconds> time;
  std::optional<Figure<Usd>> cost;  // none where nobody states a price
  Figure<double> efficiency;        // of its ranks
};

// What is asked of a candidate. What is not there does not bind.
struct Demand {
  std::optional<Seconds> within;
  std::optional<Usd> budget;
  std::optional<double> efficiency;  // at least
  // Limits hold at the bad end of a 90 % interval, too, so that each holds with 95 % probability.
  bool cautious = false;

  // Whether the answer is the candidate that costs least, and not the one that takes least time: where
  // the time is limited.
  [[nodiscard]] bool asks_for_cheapest() const { return within.has_value(); }
  [[nodiscard]] bool needs_cost() const { return within || budget; }
  [[nodiscard]] bool asks_anything() const { return within || budget || efficiency; }
};

// The indices of the front by ascending time. Candidates without a cost are not on it. O(n log n).
[[nodiscard]] std::vector<std::size_t> pareto_front(std::span<const Outcome> outcomes);

// By how much the candidate misses the limit that it misses most: the factor between what it has and
// what is asked; at most 1 where it holds all limits. A cost that is needed must be there.
[[nodiscard]] double miss(const Outcome& outcome, const Demand& demand);

// The answer: of the candidates that hold all limits the cheapest, or the fastest
// (asks_for_cheapest()). Of several the one that is also faster or cheaper, and of equals the first.
// Nothing if no candidate holds them; those without a cost are none where it is needed. O(n).
[[nodiscard]] std::optional<std::size_t> best_within(std::span<const Outcome> outcomes,
                                                     const Demand& demand);

// The candidate that misses least, by miss(); nothing if none has the cost that is needed.
[[nodiscard]] std::optional<std::size_t> nearest(std::span<const Outcome> outcomes,
                                                 const Demand& demand);

}  // namespace paceline::simulator

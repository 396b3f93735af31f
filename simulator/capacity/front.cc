// Tests: tests/simulator/capacity_test.cc.
#include "simulator/capacity/front.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "models/base/error.h"

namespace paceline::simulator {
namespace {

double cost_of(const Outcome& outcome) {
  return outcome.cost ? outcome.cost->value.value() : std::numeric_limits<double>::infinity();
}

bool counts(const Outcome& outcome, const Demand& demand) {
  return outcome.cost || !demand.needs_cost();
}

}  // namespace

std::vector<std::size_t> pareto_front(std::span<const Outcome> outcomes) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].cost) order.push_back(i);
  }
  const auto key = [&](std::size_t i) {
    return std::pair{outcomes[i].time.value.value(), cost_of(outcomes[i])};
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  // Candidates come by ascending time, and then cost. A candidate is on the front if it costs less than all before
  // it, or is the same as the last one on it.
  std::vector<std::size_t> front;
  for (const std::size_t i : order) {
    if (front.empty() || cost_of(outcomes[i]) < cost_of(outcomes[front.back()]) ||
        key(i) == key(front.back()))
      front.push_back(i);
  }
  return front;
}

double miss(const Outcome& outcome, const Demand& demand) {
  PACELINE_ASSERT(counts(outcome, demand), "the cost is known where it is needed");
  double most = 0;
  if (demand.within)
    most = std::max(most, (demand.cautious ? outcome.time.high : outcome.time.value).value() /
                              demand.within->value());
  if (demand.budget)
    most = std::max(most, (demand.cautious ? outcome.cost->high : outcome.cost->value).value() /
                              demand.budget->value());
  if (demand.efficiency)
    most = std::max(most, *demand.efficiency / (demand.cautious ? outcome.efficiency.low
                                                                : outcome.efficiency.value));
  return most;
}

std::optional<std::size_t> best_within(std::span<const Outcome> outcomes, const Demand& demand) {
  const auto key = [&](const Outcome& outcome) -> std::array<double, 2> {
    const double time = outcome.time.value.value();
    if (demand.asks_for_cheapest()) return {cost_of(outcome), time};
    return {time, cost_of(outcome)};
  };
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!counts(outcomes[i], demand) || miss(outcomes[i], demand) > 1) continue;
    if (!best || key(outcomes[i]) < key(outcomes[*best])) best = i;
  }
  return best;
}

std::optional<std::size_t> nearest(std::span<const Outcome> outcomes, const Demand& demand) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!counts(outcomes[i], demand)) continue;
    if (!best || miss(outcomes[i], demand) < miss(outcomes[*best], demand)) best = i;
  }
  return best;
}

}  // namespace paceline::simulator

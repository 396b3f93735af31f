// The choice among candidates, against its definition; bisection, against a scan; and figures that
// are made known.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "models/cluster/catalog.h"
#include "models/cluster/cluster_figures.h"
#include "simulator/capacity/crossing.h"
#include "simulator/capacity/front.h"
#include "simulator/capacity/known_figures.h"
#include "tests/support/generators.h"

namespace paceline::simulator {
namespace {

// Few values, so that candidates often take or cost the same.
Outcome drawn_outcome() {
  const auto figure = [](int value) {
    return std::array<double, 3>{static_cast<double>(value), value * 0.5,
                                 static_cast<double>(value) * (1 + test::drawn(0, 4))};
  };
  const auto time = figure(test::drawn(1, 8));
  const auto cost = figure(test::drawn(1, 8));
  const double efficiency = test::drawn(1, 10) / 10.0;
  Outcome outcome{{Seconds{time[0]}, Seconds{time[1]}, Seconds{time[2]}, {}, {}}, {}, {}};
  if (test::drawn(0, 7) > 0) outcome.cost = {Usd{cost[0]}, Usd{cost[1]}, Usd{cost[2]}, {}, {}};
  outcome.efficiency = {efficiency, efficiency * test::drawn(5, 10) / 10.0, efficiency, {}, {}};
  return outcome;
}

std::vector<Outcome> drawn_outcomes() {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(test::drawn(0, 40)));
  for (Outcome& outcome : outcomes) outcome = drawn_outcome();
  return outcomes;
}

Demand drawn_demand() {
  Demand demand;
  if (test::drawn(0, 1) == 1) demand.within = Seconds{static_cast<double>(test::drawn(1, 10))};
  if (test::drawn(0, 1) == 1) demand.budget = Usd{static_cast<double>(test::drawn(1, 10))};
  if (test::drawn(0, 2) == 2) demand.efficiency = test::drawn(1, 10) / 10.0;
  demand.cautious = test::drawn(0, 1) == 1;
  return demand;
}

bool dominates(const Outcome& a, const Outcome& b) {
  const bool no_worse = a.time.value <= b.time.value && a.cost->value <= b.cost->value;
  return no_worse && (a.time.value < b.time.value || a.cost->value < b.cost->value);
}

// Whether the candidate holds all limits, said without miss().
bool holds(const Outcome& outcome, const Demand& demand) {
  if (demand.needs_cost() && !outcome.cost) return false;
  const bool cautious = demand.cautious;
  if (demand.within && (cautious ? outcome.time.high : outcome.time.value) > *demand.within)
    return false;
  if (demand.budget && (cautious ? outcome.cost->high : outcome.cost->value) > *demand.budget)
    return false;
  return !demand.efficiency ||
         (cautious ? outcome.efficiency.low : outcome.efficiency.value) >= *demand.efficiency;
}

RC_GTEST_PROP(ParetoFront, HasWhatIsNotDominatedAndNothingElse, ()) {
  const std::vector<Outcome> outcomes = drawn_outcomes();
  const std::vector<std::size_t> front = pareto_front(outcomes);
  const std::set<std::size_t> on_front(front.begin(), front.end());
  RC_ASSERT(on_front.size() == front.size());
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    bool is_dominated = false;
    for (const Outcome& other : outcomes)
      is_dominated =
          is_dominated || (outcomes[i].cost && other.cost && dominates(other, outcomes[i]));
    RC_ASSERT(on_front.contains(i) == (outcomes[i].cost && !is_dominated));
    if (!is_dominated) continue;
    // Some candidate on the front dominates each candidate that is not on it.
    RC_ASSERT(std::any_of(front.begin(), front.end(),
                          [&](std::size_t at) { return dominates(outcomes[at], outcomes[i]); }));
  }
  for (std::size_t i = 1; i < front.size(); ++i) {
    RC_ASSERT(outcomes[front[i - 1]].time.value <= outcomes[front[i]].time.value);
    RC_ASSERT(outcomes[front[i - 1]].cost->value >= outcomes[front[i]].cost->value);
  }
}

RC_GTEST_PROP(BestWithin, IsTheLeastOfThoseThatHoldAllLimits, ()) {
  const std::vector<Outcome> outcomes = drawn_outcomes();
  const Demand demand = drawn_demand();
  const std::optional<std::size_t> best = best_within(outcomes, demand);
  const auto costs = [](const Outcome& outcome) {
    return outcome.cost ? outcome.cost->value.value() : std::numeric_limits<double>::infinity();
  };
  bool any = false;
  for (const Outcome& outcome : outcomes) {
    if (!holds(outcome, demand)) continue;
    any = true;
    RC_ASSERT(best.has_value());
    const Outcome& chosen = outcomes[*best];
    if (demand.within) {
      RC_ASSERT(costs(chosen) <= costs(outcome));
      RC_ASSERT(costs(chosen) < costs(outcome) || chosen.time.value <= outcome.time.value);
    } else {
      RC_ASSERT(chosen.time.value <= outcome.time.value);
      RC_ASSERT(chosen.time.value < outcome.time.value || costs(chosen) <= costs(outcome));
    }
  }
  RC_ASSERT(any == best.has_value());
  if (best) RC_ASSERT(holds(outcomes[*best], demand));
}

RC_GTEST_PROP(BestWithin, IsOnTheFrontWhereOnlyTimeAndCostAreLimited, ()) {
  const std::vector<Outcome> outcomes = drawn_outcomes();
  Demand demand = drawn_demand();
  demand.efficiency.reset();
  demand.cautious = false;
  const auto best = best_within(outcomes, demand);
  if (!best || !demand.needs_cost()) return;
  const std::vector<std::size_t> front = pareto_front(outcomes);
  RC_ASSERT(std::find(front.begin(), front.end(), *best) != front.end());
}

RC_GTEST_PROP(BestWithin, NeverGetsWorseWhereALimitIsLoosened, ()) {
  const std::vector<Outcome> outcomes = drawn_outcomes();
  const Demand demand = drawn_demand();
  Demand loose = demand;
  if (loose.within) loose.within = *loose.within + Seconds{static_cast<double>(test::drawn(0, 4))};
  if (loose.budget) loose.budget = *loose.budget + Usd{static_cast<double>(test::drawn(0, 4))};
  const auto tight_best = best_within(outcomes, demand);
  const auto loose_best = best_within(outcomes, loose);
  if (!tight_best) return;
  RC_ASSERT(loose_best.has_value());
  if (demand.within) {
    RC_ASSERT(outcomes[*loose_best].cost->value <= outcomes[*tight_best].cost->value);
  } else {
    RC_ASSERT(outcomes[*loose_best].time.value <= outcomes[*tight_best].time.value);
  }
}

RC_GTEST_PROP(Nearest, MissesNoMoreThanAnyOther, ()) {
  const std::vector<Outcome> outcomes = drawn_outcomes();
  const Demand demand = drawn_demand();
  const auto found = nearest(outcomes, demand);
  for (const Outcome& outcome : outcomes) {
    if (demand.needs_cost() && !outcome.cost) continue;
    RC_ASSERT(found.has_value());
    RC_ASSERT(miss(outcomes[*found], demand) <= miss(outcome, demand));
    RC_ASSERT((miss(outcome, demand) <= 1) == holds(outcome, demand));
  }
}

RC_GTEST_PROP(CrossingOfWholeNumbers, IsThatOfAScanWhereThereIsOne, ()) {
  const int low = test::drawn(1, 50);
  const int high = low + test::drawn(1, 200);
  const int last = test::drawn(low, high - 1);
  int asked = 0;
  const auto at = crossing(low, high, true, [&](int n) {
    ++asked;
    return n <= last;
  });
  int scanned = low;
  while (scanned + 1 <= last) ++scanned;
  RC_ASSERT(at.below == scanned);
  RC_ASSERT(at.above == scanned + 1);
  RC_ASSERT(asked <= std::ceil(std::log2(high - low)));
}

RC_GTEST_PROP(CrossingOfWholeNumbers, EndsAtNeighboursOnEitherSideOfAnything, ()) {
  const int count = test::drawn(2, 60);
  std::vector<bool> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = test::drawn(0, 1) == 1;
  values.front() = true;
  values.back() = false;
  const auto at =
      crossing(0, count - 1, true, [&](int n) { return values[static_cast<std::size_t>(n)]; });
  RC_ASSERT(at.above == at.below + 1);
  RC_ASSERT(values[static_cast<std::size_t>(at.below)]);
  RC_ASSERT(!values[static_cast<std::size_t>(at.above)]);
}

RC_GTEST_PROP(CrossingOfNumbers, IsWithinTheTolerance, ()) {
  const double at = std::exp(test::drawn(-300, 300) / 100.0);
  const auto found = crossing(0.01, 100.0, 0.01, false, [&](double x) { return x >= at; });
  RC_ASSERT(found.below < at);
  RC_ASSERT(found.above >= at);
  RC_ASSERT(found.above <= 1.0100001 * found.below);
}

// The figures of a cluster by name, as value, low and high.
std::map<std::string, std::array<double, 3>> figures_of(const models::Cluster& cluster) {
  std::map<std::string, std::array<double, 3>> all;
  const auto number = [](auto value) {
    if constexpr (std::is_same_v<decltype(value), double>) {
      return value;
    } else {
      return value.value();
    }
  };
  models::for_each_figure(cluster, [&](const char* part, const char* what, const auto& figure) {
    all[std::string(part) + " " + what] = {number(figure.value), number(figure.low),
                                           number(figure.high)};
  });
  return all;
}

TEST(KnownFigures, LeaveValuesAndAllOtherGroupsAsTheyAre) {
  const std::map<FigureGroup, std::vector<std::string>> parts = {
      {FigureGroup::compute, {"device "}},
      {FigureGroup::nic_bandwidth, {"NIC line rate", "NIC bandwidth"}},
      {FigureGroup::nic_latency, {"NIC latency", "fabric hop latency"}},
      {FigureGroup::intra_link, {"intra link", "lane", "host "}},
      {FigureGroup::waiting, {}},
      {FigureGroup::beside_collectives, {}},
      {FigureGroup::collective_launch, {}},
      {FigureGroup::input, {"host link", "node storage", "node decode"}},
      {FigureGroup::unexplained, {}},
      {FigureGroup::price, {"node price"}}};
  for (const models::CatalogEntry& entry : models::catalog_clusters()) {
    const models::Cluster cluster = models::catalog_cluster(entry.name);
    for (const auto& [group, own] : parts) {
      models::Cluster known = cluster;
      std::optional<models::Profile> none;
      make_known(group, known, none);
      const auto before = figures_of(cluster);
      for (const auto& [name, figure] : figures_of(known)) {
        EXPECT_EQ(figure[0], before.at(name)[0]) << name;
        const bool is_own =
            std::any_of(own.begin(), own.end(), [&, &name = name](const auto& part) {
              return name.starts_with(part) && name != "device memory" &&
                     name != "device rated power";
            });
        if (is_own) {
          EXPECT_EQ(figure[1], figure[0]) << entry.name << ": " << name;
          EXPECT_EQ(figure[2], figure[0]) << entry.name << ": " << name;
        } else {
          EXPECT_EQ(figure, before.at(name)) << entry.name << ": " << name;
        }
      }
    }
  }
}

TEST(KnownFigures, OfEffectsKeepTheirValuesAndNothingIsLeftUnexplained) {
  const models::Cluster cluster = models::catalog_cluster("h200-ndr");
  std::optional<models::Profile> none;
  models::Cluster known = cluster;
  for (const auto& [group, text] : figure_groups) make_known(group, known, none);
  const models::Effects& before = *cluster.effects;
  const models::Effects& after = *known.effects;
  for (const auto figure :
       {&models::Effects::rank_spread, &models::Effects::jitter, &models::Effects::crowding,
        &models::Effects::slowdown, &models::Effects::memory_bound}) {
    EXPECT_EQ((after.*figure).value, (before.*figure).value);
    EXPECT_EQ((after.*figure).low, (after.*figure).high);
    EXPECT_LT((before.*figure).low, (before.*figure).high);
  }
  EXPECT_EQ(after.collective_launch.low, before.collective_launch.value);
  EXPECT_EQ(after.layer_launch.high, before.layer_launch.value);
  EXPECT_EQ(after.unexplained.value, 0);
  EXPECT_EQ(after.unexplained_doubling.value, 0);
  EXPECT_EQ(after.unexplained_exposed.value, 0);
}

}  // namespace
}  // namespace paceline::simulator

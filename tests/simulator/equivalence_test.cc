#include "simulator/engine/equivalence.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "models/collective/enumerate.h"
#include "tests/support/schedules.h"

namespace paceline::simulator {
namespace {

// What a rank does in a step, by labels: peers, sizes, and whether the message leaves its node.
using Behaviour = std::multiset<std::tuple<bool, int, double, bool, bool>>;

bool equitable_by_force(const models::Schedule& schedule, int modulus, int ranks_per_node) {
  for (int step = 0; step < schedule.steps(); ++step) {
    std::vector<Behaviour> behaviour(static_cast<std::size_t>(schedule.ranks()));
    models::for_each_transfer(
        schedule, step, models::Span<double>{0.0, 1.0}, [&](const models::Transfer<double>& t) {
          const bool leaves = t.from / ranks_per_node != t.to / ranks_per_node;
          behaviour[static_cast<std::size_t>(t.from)].emplace(true, t.to % modulus, t.span.size,
                                                              t.reduce, leaves);
          behaviour[static_cast<std::size_t>(t.to)].emplace(false, t.from % modulus, t.span.size,
                                                            t.reduce, leaves);
        });
    for (int rank = modulus; rank < schedule.ranks(); ++rank) {
      if (behaviour[static_cast<std::size_t>(rank)] !=
          behaviour[static_cast<std::size_t>(rank % modulus)])
        return false;
    }
  }
  return true;
}

TEST(Equivalence, SaysYesOnlyWhereRanksBehaveAlike) {
  for (int p = 1; p <= 36; ++p) {
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      for (int g = 1; g < p; ++g) {
        if (p % g != 0) continue;
        for (int modulus = g; modulus <= p; modulus += g) {
          if (p % modulus == 0 && is_equitable(schedule, modulus)) {
            EXPECT_TRUE(equitable_by_force(schedule, modulus, g))
                << name << " p=" << p << " g=" << g << " M=" << modulus;
          }
        }
      }
    }
  }
}

TEST(Equivalence, CollapsesWhatTheDesignCounts) {
  EXPECT_EQ(collapsed_ranks(models::ring_all_reduce(2048), 8), 8);
  EXPECT_EQ(collapsed_ranks(models::ring_all_reduce(2048), 1), 1);
  EXPECT_EQ(collapsed_ranks(models::halving_doubling_all_reduce(1024), 8), 8);
  EXPECT_EQ(collapsed_ranks(models::hierarchical_all_reduce(1024, 16), 8), 16);
  EXPECT_EQ(collapsed_ranks(models::hierarchical_all_reduce(1024, 4), 8), 8);
  EXPECT_EQ(collapsed_ranks(test::hierarchical_reduce_scatter(1024, 8), 8), 8);
  EXPECT_EQ(collapsed_ranks(models::halving_doubling_all_reduce(96), 8),
            96);                                                       // the fold tells ranks apart
  EXPECT_EQ(collapsed_ranks(models::ring_all_reduce(1001), 8), 1001);  // an incomplete node
}

}  // namespace
}  // namespace paceline::simulator

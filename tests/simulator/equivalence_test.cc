#include "simulator/engine/equivalence.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <set>
#include <tuple>
#include <vector>

#include "models/collective/algorithms.h"
#include "models/collective/enumerate.h"
#include "tests/support/generators.h"
#include "tests/support/schedules.h"
#include "tests/support/thoroughness.h"

namespace paceline::simulator {
namespace {

int least_positions(const models::Schedule& schedule, int ranks_per_node) {
  return collapsed_ranks({&schedule, 1},
                         Routes({.ranks_per_node = ranks_per_node}, schedule.ranks()));
}

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

TEST(Equivalence, SaysYesOnlyWhereRanksBehaveAlikeOnLargerClusters) {
  int collapsed = 0;
  for (const int p :
       test::cases<std::vector<int>>({40, 45, 48}, {40, 42, 44, 45, 48, 64, 72, 96})) {
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      for (int modulus = 1; modulus < p; ++modulus) {
        if (p % modulus != 0 || !is_equitable(schedule, modulus)) continue;
        ++collapsed;
        for (int g = 1; g <= modulus; ++g) {
          if (modulus % g == 0)
            EXPECT_TRUE(equitable_by_force(schedule, modulus, g))
                << name << " p=" << p << " g=" << g << " M=" << modulus;
        }
      }
    }
  }
  EXPECT_GT(collapsed, test::cases(50, 200));
}

// Parts alone: in an all-reduce a cautious part can hide a bold one.
TEST(Equivalence, SaysYesOnlyWhereRanksOfEachPartBehaveAlike) {
  using namespace models;
  const auto primitives = [](int q) {
    std::vector<Schedule> list = {Schedule(RingReduceScatter{q}),
                                  Schedule(RingAllGather{q}),
                                  pipelined(2, Schedule(ChainReduce{q})),
                                  pipelined(2, Schedule(ChainBroadcast{q})),
                                  Schedule(BinomialReduce{q}),
                                  Schedule(BinomialBroadcast{q}),
                                  Schedule(ServerPush{q, q}),
                                  Schedule(ServerPull{q, q})};
    if (std::has_single_bit(static_cast<unsigned>(q))) {
      list.emplace_back(RecursiveHalving{q});
      list.emplace_back(RecursiveDoubling{q});
    }
    return list;
  };
  int equitable = 0;
  const auto check = [&](const Schedule& schedule) {
    const int p = schedule.ranks();
    for (int modulus = 1; modulus < p; ++modulus) {
      if (p % modulus != 0 || !is_equitable(schedule, modulus)) continue;
      ++equitable;
      for (int g = 1; g <= modulus; ++g) {
        if (modulus % g == 0)
          EXPECT_TRUE(equitable_by_force(schedule, modulus, g))
              << schedule.description() << " g=" << g << " M=" << modulus;
      }
    }
  };
  for (const int p : {4, 6, 8, 12, 16, 18, 24, 32}) {
    for (const Schedule& primitive : primitives(p)) check(primitive);
    for (int k = 1; k <= p; ++k) {
      if (p % k != 0) continue;
      for (const Share share : {Share::whole, Share::own_part}) {
        for (const Schedule& inner : primitives(k)) check(within(p, blocks(p, k), inner, share));
        for (const Schedule& inner : primitives(p / k)) {
          check(within(p, across_blocks(p, k), inner, share));
          check(within(p, block_masters(p, k), inner, share));
        }
      }
    }
  }
  EXPECT_GT(equitable, 1000);
}

RC_GTEST_PROP(Equivalence, SaysYesOnlyWhereRanksOfAnyScheduleBehaveAlike, ()) {
  const int p = *rc::gen::element(4, 8, 12, 16, 18, 24, 36);
  const models::Schedule schedule = test::drawn_all_reduce(p, 2);
  const int modulus = test::drawn_divisor(p);
  const int g = test::drawn_divisor(modulus);
  if (is_equitable(schedule, modulus))
    RC_ASSERT(equitable_by_force(schedule, modulus, g) || g >= p);
}

// It may be too cautious, but not where the catalogue's algorithms meet whole nodes.
TEST(Equivalence, MissesNothingOfTheCatalogueOnWholeNodes) {
  for (const int p : {8, 16, 24, 32, 64}) {
    for (const auto& algorithm : models::all_reduce_catalogue()) {
      const models::Schedule schedule = algorithm.build({.ranks = p, .group_size = 0});
      for (int g = 1; g < p; ++g) {
        if (p % g != 0) continue;
        int least = p;
        for (int modulus = p; modulus >= g; modulus -= g) {
          if (p % modulus == 0 && equitable_by_force(schedule, modulus, g)) least = modulus;
        }
        EXPECT_EQ(least_positions(schedule, g), least)
            << algorithm.name << " p=" << p << " g=" << g;
      }
    }
  }
}

TEST(Equivalence, CollapsesWhatTheDesignCounts) {
  EXPECT_EQ(least_positions(models::ring_all_reduce(2048), 8), 8);
  EXPECT_EQ(least_positions(models::ring_all_reduce(2048), 1), 1);
  EXPECT_EQ(least_positions(models::halving_doubling_all_reduce(1024), 8), 8);
  EXPECT_EQ(least_positions(models::hierarchical_all_reduce(1024, 16), 8), 16);
  EXPECT_EQ(least_positions(models::hierarchical_all_reduce(1024, 4), 8), 8);
  EXPECT_EQ(least_positions(test::hierarchical_reduce_scatter(1024, 8), 8), 8);
  EXPECT_EQ(least_positions(models::halving_doubling_all_reduce(96), 8),
            96);                                                       // the fold tells ranks apart
  EXPECT_EQ(least_positions(models::ring_all_reduce(1001), 8), 1001);  // an incomplete node
}

// A symmetric schedule looks the same whatever ranks change places.
TEST(Equivalence, ADirectExchangeIsSymmetricAndNothingElseIsCalledSo) {
  int symmetric = 0;
  for (int p = 2; p <= 12; ++p) {
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      if (!is_symmetric(schedule)) continue;
      ++symmetric;
      // Transpositions of neighbours make all exchanges.
      for (int swapped = 0; swapped + 1 < p; ++swapped) {
        const auto image = [swapped](int rank) {
          return rank == swapped ? swapped + 1 : rank == swapped + 1 ? swapped : rank;
        };
        for (int step = 0; step < schedule.steps(); ++step) {
          std::multiset<std::tuple<int, int, double, bool>> messages;
          std::multiset<std::tuple<int, int, double, bool>> images;
          models::for_each_transfer(schedule, step, models::Span<double>{0.0, 1.0},
                                    [&](const models::Transfer<double>& t) {
                                      messages.emplace(t.from, t.to, t.span.size, t.reduce);
                                      images.emplace(image(t.from), image(t.to), t.span.size,
                                                     t.reduce);
                                    });
          EXPECT_EQ(messages, images) << name << " p=" << p;
        }
      }
    }
  }
  EXPECT_GE(symmetric, 11);
  EXPECT_FALSE(is_symmetric(models::ring_all_reduce(4)));
  EXPECT_FALSE(is_symmetric(models::parameter_server(4, 2, 0)));
}

TEST(Positions, AreThoseOfAFullNodeAndOfTheLastWhereAScheduleIsSymmetric) {
  const auto positions = [](const models::Schedule& schedule, int g) {
    return positions_of({&schedule, 1}, Routes({.ranks_per_node = g}, schedule.ranks()));
  };
  const Positions full = positions(models::parameter_server(24, 24, 0), 8);
  EXPECT_EQ(full.count(), 8);
  EXPECT_EQ(full.whole(), 24);
  const Positions tail = positions(models::parameter_server(27, 27, 0), 8);
  EXPECT_EQ(tail.count(), 8 + 3);
  EXPECT_EQ(tail.of(23), 7);
  EXPECT_EQ(tail.of(26), 10);
  EXPECT_EQ(tail.rank(10), 26);
  EXPECT_EQ(tail.size(7), 3);
  EXPECT_EQ(tail.size(10), 1);
  EXPECT_EQ(positions(models::ring_all_reduce(27), 8).count(), 27);
  EXPECT_EQ(positions(models::parameter_server(15, 15, 0), 8).count(), 15);
}

}  // namespace
}  // namespace paceline::simulator

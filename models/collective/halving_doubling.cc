// Tests: tests/models/all_reduce_test.cc, tests/agreement.
#include <bit>

#include "models/collective/algorithms.h"
#include "models/collective/all_reduce.h"
#include "models/collective/combinators.h"

namespace paceline::models {

Schedule halving_doubling_all_reduce(int ranks) {
  check_rank_count(ranks);
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
  const Schedule core =
      sequence({Schedule(RecursiveHalving{power}), Schedule(RecursiveDoubling{power})});
  if (power == ranks) return core;

  // Neighbours fold, so that with node-major placement the folded bucket stays inside a node.
  const int folded = ranks - power;
  const Groups pairs{.members = {{0, 2, 1}}, .count = folded, .stride = 2};
  Groups survivors{.members = {{1, folded, 2}}, .count = 1, .stride = 0};
  if (2 * folded < ranks) survivors.members.push_back({2 * folded, ranks - 2 * folded, 1});
  return sequence(
      {within(ranks, pairs, Schedule(PointToPoint{.ranks = 2, .from = 0, .to = 1, .reduce = true})),
       within(ranks, survivors, core),
       within(ranks, pairs,
              Schedule(PointToPoint{.ranks = 2, .from = 1, .to = 0, .reduce = false}))});
}

}  // namespace paceline::models

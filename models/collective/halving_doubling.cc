// Tests: tests/models/algorithms_test.cc, tests/agreement.
#include <bit>

#include "models/collective/algorithms.h"
#include "models/collective/catalogue.h"
#include "models/collective/combinators.h"

namespace paceline::models {
namespace {

int floor_power(int ranks) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
}

// Extends `core`, which is over the largest power of two, to any number of ranks. Neighbours fold,
// so that with node-major placement the folded bucket stays inside a node.
Schedule folded(int ranks, const Schedule& core) {
  if (core.ranks() == ranks) return core;
  const int count = ranks - core.ranks();
  const Groups pairs{.members = {{0, 2, 1}}, .count = count, .stride = 2};
  Groups survivors{.members = {{1, count, 2}}, .count = 1, .stride = 0};
  if (2 * count < ranks) survivors.members.push_back({2 * count, ranks - 2 * count, 1});
  return sequence(
      {within(ranks, pairs, Schedule(PointToPoint{.ranks = 2, .from = 0, .to = 1, .reduce = true})),
       within(ranks, survivors, core),
       within(ranks, pairs,
              Schedule(PointToPoint{.ranks = 2, .from = 1, .to = 0, .reduce = false}))});
}

Groups contiguous(int first, int count) {
  return Groups{.members = {{first, count, 1}}, .count = 1, .stride = 0};
}

}  // namespace

Schedule recursive_doubling_all_reduce(int ranks) {
  check_rank_count(ranks);
  return folded(ranks, Schedule(RecursiveExchange{floor_power(ranks)}));
}

Schedule halving_doubling_all_reduce(int ranks) {
  check_rank_count(ranks);
  const int power = floor_power(ranks);
  return folded(ranks,
                sequence({Schedule(RecursiveHalving{power}), Schedule(RecursiveDoubling{power})}));
}

Schedule halving_reduce_scatter(int ranks) {
  check_rank_count(ranks);
  return floor_power(ranks) == ranks ? Schedule(OrderedHalving{ranks})
                                     : bruck_reduce_scatter(ranks);
}

Schedule doubling_all_gather(int ranks) {
  check_rank_count(ranks);
  return floor_power(ranks) == ranks ? Schedule(OrderedDoubling{ranks}) : bruck_all_gather(ranks);
}

Schedule binary_blocks_all_reduce(int ranks) {
  check_rank_count(ranks);
  std::vector<Schedule> halvings;
  std::vector<Schedule> doublings;
  std::vector<Schedule> folds;    // from the largest pair of blocks to the smallest
  std::vector<Schedule> unfolds;  // in the same order
  int first = 0;
  int previous = 0;  // how many ranks the block before has
  for (int rest = ranks; rest > 0; rest -= previous) {
    const int size = floor_power(rest);
    if (previous > 0) {
      const Groups both = contiguous(first - previous, previous + size);
      folds.push_back(within(ranks, both, Schedule(BlockFold{previous, size})));
      unfolds.push_back(within(ranks, both, Schedule(BlockUnfold{previous, size})));
    }
    const Groups block = contiguous(first, size);
    halvings.push_back(within(ranks, block, Schedule(RecursiveHalving{size})));
    doublings.push_back(within(ranks, block, Schedule(RecursiveDoubling{size})));
    first += size;
    previous = size;
  }
  // A block starts its halving at once, and its doubling as soon as it has its pieces back.
  std::vector<Schedule> all = {parallel(std::move(halvings))};
  all.insert(all.end(), folds.rbegin(), folds.rend());
  all.insert(all.end(), unfolds.begin(), unfolds.end());
  all.push_back(parallel(std::move(doublings)));
  return sequence(std::move(all));
}

}  // namespace paceline::models

// Schedules for tests: all of the catalogue, and compositions that the catalogue does not have yet.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "models/collective/algorithms.h"
#include "models/collective/catalogue.h"
#include "models/collective/combinators.h"

namespace paceline::test {

// Reduce-scatter in each block, all-reduce of the parts across blocks, all-gather in each block.
inline models::Schedule hierarchical_reduce_scatter(int ranks, int size) {
  using namespace models;
  return sequence(
      {within(ranks, blocks(ranks, size), Schedule(RingReduceScatter{size})),
       within(ranks, across_blocks(ranks, size), ring_all_reduce(ranks / size), Share::own_part),
       within(ranks, blocks(ranks, size), Schedule(RingAllGather{size}))});
}

// All-reduce schedules over p ranks that together use every primitive and combinator.
inline std::vector<std::pair<std::string, models::Schedule>> all_reduces(int p) {
  using namespace models;
  std::vector<std::pair<std::string, Schedule>> list;
  for (const CollectiveAlgorithm& algorithm : all_reduce_catalogue()) {
    list.emplace_back(std::string(algorithm.name), algorithm.build({.ranks = p, .group_size = 0}));
    if (!algorithm.takes_group) continue;
    for (int k = 1; k <= p; ++k) {
      if (p % k == 0)
        list.emplace_back(std::string(algorithm.name) + " k=" + std::to_string(k),
                          algorithm.build({.ranks = p, .group_size = k}));
    }
  }
  list.emplace_back("binomial",
                    sequence({Schedule(BinomialReduce{p}), Schedule(BinomialBroadcast{p})}));
  list.emplace_back("direct", sequence({Schedule(ServerPush{p, p}), Schedule(ServerPull{p, p})}));
  for (const int segments : {1, 3, 2 * p}) {
    list.emplace_back("chain S=" + std::to_string(segments),
                      sequence({pipelined(segments, Schedule(ChainReduce{p})),
                                pipelined(segments, Schedule(ChainBroadcast{p}))}));
  }
  for (int k = 2; k < p; ++k) {
    if (p % k == 0)
      list.emplace_back("torus k=" + std::to_string(k), hierarchical_reduce_scatter(p, k));
  }
  // Half of the bucket each, one after the other.
  list.emplace_back("two parts", sequence({on_part(0, 2, ring_all_reduce(p)),
                                           on_part(1, 2, halving_doubling_all_reduce(p))}));
  return list;
}

}  // namespace paceline::test

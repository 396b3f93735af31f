// Schedules for tests: all of the catalogue, and compositions that the catalogue does not have yet.
#pragma once

#include <numeric>
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

// The options with which the tests try an algorithm of the catalogue over p ranks: its defaults,
// and each option that it takes at its least, its most and between: every group size, a bucket in
// fewer and in more segments than ranks, one ring, two and as many as there are, servers from one
// to p.
inline std::vector<models::ScheduleOptions> option_sets(
    const models::CollectiveAlgorithm& algorithm, int p) {
  std::vector<models::ScheduleOptions> sets = {{.ranks = p}};
  for (int k = 1; k <= (algorithm.takes_group ? p : 0); ++k) {
    if (p % k == 0) sets.push_back({.ranks = p, .group_size = k});
  }
  if (algorithm.takes_segments) {
    for (const int segments : {1, 2, 3, p + 1}) sets.push_back({.ranks = p, .segments = segments});
  }
  if (algorithm.takes_rings) {
    for (const int rings : {1, 2, 3}) {
      for (const int k : {1, 8}) {
        // Strides that have no divisor in common with the ranks of a ring's block.
        const int block = k == 1 ? p : k;
        int strides = 0;
        for (int stride = 1; stride <= block / 2; ++stride)
          strides += std::gcd(stride, block) == 1 ? (2 * stride == block ? 1 : 2) : 0;
        if (p % k == 0 && rings <= strides)
          sets.push_back({.ranks = p, .group_size = k, .rings = rings});
      }
    }
  }
  if (algorithm.takes_servers) {
    for (const int servers : {1, 2, p / 2, p - 1, p}) {
      for (const int first : {0, 1, p - 1}) {
        if (servers >= 1 && servers <= p && first < p)
          sets.push_back({.ranks = p, .servers = servers, .first_server = first});
      }
    }
  }
  return sets;
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

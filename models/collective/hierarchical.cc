// Tests: tests/models/algorithms_test.cc, tests/agreement.
#include <fmt/core.h>

#include <cstdint>
#include <string>

#include "models/base/error.h"
#include "models/collective/algorithms.h"
#include "models/collective/catalogue.h"
#include "models/collective/combinators.h"

namespace paceline::models {
namespace {

std::string divisors(int ranks) {
  std::string list;
  for (int k = 1; k <= ranks; ++k) {
    if (ranks % k == 0) list += (list.empty() ? "" : ", ") + std::to_string(k);
  }
  return list;
}

// Reduce-scatter in each block, then `across` on the parts.
Schedule summed_in_parts(int ranks, int size, const Schedule& across) {
  return sequence({within(ranks, blocks(ranks, size), ring_reduce_scatter(size)),
                   within(ranks, across_blocks(ranks, size), across, Share::own_part)});
}

Schedule gathered_in_blocks(int ranks, int size) {
  return within(ranks, blocks(ranks, size), ring_all_gather(size));
}

Schedule scattered(int ranks, int size, const Schedule& across) {
  return sequence({summed_in_parts(ranks, size, across), gathered_in_blocks(ranks, size)});
}

}  // namespace

void check_divides(int group_size, int ranks) {
  if (group_size >= 1 && ranks % group_size == 0) return;
  throw InputError(fmt::format("group size {} does not divide {} ranks", group_size, ranks),
                   "choose one of " + divisors(ranks));
}

Schedule hierarchical_all_reduce(int ranks, int group_size) {
  check_rank_count(ranks);
  check_divides(group_size, ranks);
  const int k = group_size;
  return sequence({within(ranks, blocks(ranks, k), pipelined(k, Schedule(ChainReduce{k}))),
                   within(ranks, block_masters(ranks, k), ring_all_reduce(ranks / k)),
                   within(ranks, blocks(ranks, k), pipelined(k, Schedule(ChainBroadcast{k})))});
}

Schedule hierarchical_scatter_all_reduce(int ranks, int group_size) {
  check_rank_count(ranks);
  check_divides(group_size, ranks);
  return scattered(ranks, group_size, halving_doubling_all_reduce(ranks / group_size));
}

Schedule hierarchical_direct_all_reduce(int ranks, int group_size) {
  check_rank_count(ranks);
  check_divides(group_size, ranks);
  const int k = group_size;
  return sequence({within(ranks, blocks(ranks, k), Schedule(ServerPush{k, 1})),
                   within(ranks, block_masters(ranks, k), halving_doubling_all_reduce(ranks / k)),
                   within(ranks, blocks(ranks, k), Schedule(ServerPull{k, 1}))});
}

Schedule hierarchical_reduce_scatter(int ranks, int group_size) {
  check_rank_count(ranks);
  check_divides(group_size, ranks);
  const int k = group_size;
  return sequence(
      {within(ranks, blocks(ranks, k), Schedule(RingReduceScatter{.ranks = k, .rows = ranks / k})),
       Schedule(RingReduceScatter{.ranks = ranks, .rings = k})});
}

Schedule hierarchical_all_gather(int ranks, int group_size) {
  check_rank_count(ranks);
  check_divides(group_size, ranks);
  const int k = group_size;
  return sequence(
      {Schedule(RingAllGather{.ranks = ranks, .rings = k}),
       within(ranks, blocks(ranks, k), Schedule(RingAllGather{.ranks = k, .rows = ranks / k}))});
}

Schedule grouped_reduce_scatter(int ranks, int group_size) {
  check_rank_count(ranks);
  check_divides(group_size, ranks);
  return summed_in_parts(ranks, group_size, ring_all_reduce(ranks / group_size));
}

Schedule grouped_all_gather(int ranks, int group_size) {
  check_rank_count(ranks);
  check_divides(group_size, ranks);
  return gathered_in_blocks(ranks, group_size);
}

Schedule hierarchical_broadcast(int ranks, int group_size, int segments) {
  check_rank_count(ranks);
  check_divides(group_size, ranks);
  return sequence(
      {within(ranks, block_masters(ranks, group_size),
              binomial_broadcast(ranks / group_size, segments)),
       within(ranks, blocks(ranks, group_size), binomial_broadcast(group_size, segments))});
}

Schedule torus_all_reduce(int ranks, int row_length) {
  check_rank_count(ranks);
  check_divides(row_length, ranks);
  return scattered(ranks, row_length, ring_all_reduce(ranks / row_length));
}

int default_group_size(int ranks) {
  check_rank_count(ranks);
  int best = 1;
  std::int64_t fewest = 2 * (static_cast<std::int64_t>(ranks) - 1);
  // Above the root, k takes more steps than ranks / k: 4 k + 2 ranks / k.
  for (int k = 2; k <= ranks / k; ++k) {
    if (ranks % k != 0) continue;
    const std::int64_t steps = 4 * (static_cast<std::int64_t>(k) - 1) + 2 * (ranks / k - 1);
    if (steps < fewest) {
      fewest = steps;
      best = k;
    }
  }
  return best;
}

int default_row_length(int ranks) {
  check_rank_count(ranks);
  int best = 1;
  for (int k = 2; k <= ranks / k; ++k) {
    if (ranks % k == 0) best = k;
  }
  return best;
}

}  // namespace paceline::models

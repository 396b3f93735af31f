// Tests: tests/models/all_reduce_test.cc, tests/agreement.
#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "models/base/error.h"
#include "models/collective/algorithms.h"
#include "models/collective/all_reduce.h"
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

}  // namespace

Schedule hierarchical_all_reduce(int ranks, int group_size) {
  check_rank_count(ranks);
  if (group_size < 1 || ranks % group_size != 0) {
    throw InputError(fmt::format("group size {} does not divide {} ranks", group_size, ranks),
                     "choose one of " + divisors(ranks));
  }
  const int k = group_size;
  return sequence(
      {within(ranks, blocks(ranks, k), Schedule(ChainReduce{.ranks = k, .segments = k})),
       within(ranks, block_masters(ranks, k), ring_all_reduce(ranks / k)),
       within(ranks, blocks(ranks, k), Schedule(ChainBroadcast{.ranks = k, .segments = k}))});
}

int default_group_size(int ranks) {
  check_rank_count(ranks);
  int best = 1;
  std::int64_t fewest = 2 * (static_cast<std::int64_t>(ranks) - 1);
  for (int k = 2; k <= ranks; ++k) {
    if (ranks % k != 0) continue;
    const std::int64_t steps = 4 * (static_cast<std::int64_t>(k) - 1) + 2 * (ranks / k - 1);
    if (steps < fewest) {
      fewest = steps;
      best = k;
    }
  }
  return best;
}

}  // namespace paceline::models

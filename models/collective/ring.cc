// Tests: tests/models/algorithms_test.cc, tests/agreement.
#include <fmt/core.h>

#include <numeric>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/collective/algorithms.h"
#include "models/collective/catalogue.h"
#include "models/collective/combinators.h"

namespace paceline::models {

Schedule ring_reduce_scatter(int ranks) {
  check_rank_count(ranks);
  return Schedule(RingReduceScatter{.ranks = ranks});
}

Schedule ring_all_gather(int ranks) {
  check_rank_count(ranks);
  return Schedule(RingAllGather{.ranks = ranks});
}

Schedule neighbour_exchange(int ranks) {
  check_rank_count(ranks);
  return Schedule(RingShift{ranks});
}

Schedule ring_all_reduce(int ranks) {
  return sequence({ring_reduce_scatter(ranks), ring_all_gather(ranks)});
}

Schedule bidirectional_ring_all_reduce(int ranks) {
  const Schedule ring = ring_all_reduce(ranks);
  return parallel({on_part(0, 2, ring), on_part(1, 2, mirrored(ring))});
}

Schedule multi_ring_all_reduce(int ranks, int rings, int group_size) {
  check_rank_count(ranks);
  check_divides(group_size, ranks);
  if (rings < 0) throw InputError(fmt::format("{} rings", rings), "choose at least 1");
  // Rings over the same ranks are disjoint if their strides differ: 1, -1, 3, -3, ...
  const int block = group_size == 1 ? ranks : group_size;
  std::vector<int> strides;
  for (int stride = 1; stride <= std::max(1, block / 2); ++stride) {
    if (std::gcd(stride, block) != 1) continue;
    strides.push_back(stride);
    if (2 * stride % block != 0) strides.push_back(block - stride);
  }
  const int most = static_cast<int>(strides.size());
  if (rings > most) {
    throw InputError(fmt::format("{} disjoint rings over {} ranks", rings, block),
                     fmt::format("choose 1 to {}, one for each stride that has no divisor in "
                                 "common with {}",
                                 most, block));
  }
  const int count = rings == 0 ? std::min(default_rings, most) : rings;
  const Schedule ring = ring_all_reduce(ranks);
  std::vector<Schedule> shares;
  for (int i = 0; i < count; ++i) {
    // Each ring enters the groups at a rank of its own, and so at a NIC of its own.
    const int offset = group_size == 1 ? 0 : i * group_size / count;
    shares.push_back(on_part(i, count, renumbered(block, strides[to_size(i)], offset, ring)));
  }
  return parallel(std::move(shares));
}

}  // namespace paceline::models

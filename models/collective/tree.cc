// Tests: tests/models/algorithms_test.cc, tests/agreement.
#include <fmt/core.h>

#include "models/base/error.h"
#include "models/collective/algorithms.h"
#include "models/collective/catalogue.h"
#include "models/collective/combinators.h"

namespace paceline::models {
namespace {

void check_segments(int segments) {
  if (segments < 1 || segments > max_segments) {
    throw InputError(fmt::format("{} segments", segments),
                     fmt::format("choose 1 to {}", max_segments));
  }
}

}  // namespace

Schedule double_binary_tree_all_reduce(int ranks, int segments) {
  check_rank_count(ranks);
  check_segments(segments);
  const Schedule tree =
      sequence({Schedule(BinaryTreeReduce{ranks}), Schedule(BinaryTreeBroadcast{ranks})});
  // An even number of ranks is mirrored, an odd one shifted: leaves and inner ranks change places.
  const Schedule other = ranks % 2 == 0 ? mirrored(tree) : renumbered(ranks, 1, 1, tree);
  return pipelined(segments, parallel({on_part(0, 2, tree), on_part(1, 2, other)}));
}

Schedule binomial_broadcast(int ranks, int segments) {
  check_rank_count(ranks);
  check_segments(segments);
  return pipelined(segments, Schedule(BinomialBroadcast{ranks}));
}

Schedule binomial_reduce(int ranks, int segments) {
  check_rank_count(ranks);
  check_segments(segments);
  return pipelined(segments, Schedule(BinomialReduce{ranks}));
}

Schedule chain_broadcast(int ranks, int segments) {
  check_rank_count(ranks);
  check_segments(segments);
  return pipelined(segments, Schedule(ChainBroadcast{ranks}));
}

Schedule chain_reduce(int ranks, int segments) {
  check_rank_count(ranks);
  check_segments(segments);
  return pipelined(segments, Schedule(ChainReduce{ranks}));
}

Schedule binomial_gather(int ranks) {
  check_rank_count(ranks);
  return Schedule(BinomialGather{ranks});
}

Schedule binomial_scatter(int ranks) {
  check_rank_count(ranks);
  return Schedule(BinomialScatter{ranks});
}

}  // namespace paceline::models

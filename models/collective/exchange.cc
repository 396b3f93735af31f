// Tests: tests/models/algorithms_test.cc, tests/agreement.
#include <fmt/core.h>

#include <algorithm>

#include "models/base/error.h"
#include "models/collective/algorithms.h"
#include "models/collective/catalogue.h"
#include "models/collective/combinators.h"

namespace paceline::models {

void check_server_count(int servers, int ranks) {
  if (servers >= 1 && servers <= ranks) return;
  throw InputError(fmt::format("{} servers among {} ranks", servers, ranks),
                   fmt::format("choose 1 to {}", ranks));
}

Schedule parameter_server(int ranks, int servers, int first_server) {
  check_rank_count(ranks);
  check_server_count(servers, ranks);
  const Schedule both =
      sequence({Schedule(ServerPush{ranks, servers}), Schedule(ServerPull{ranks, servers})});
  return first_server == 0 ? both : renumbered(ranks, 1, first_server, both);
}

Schedule direct_reduce_scatter(int ranks) {
  check_rank_count(ranks);
  return Schedule(ServerPush{ranks, ranks});
}

Schedule direct_all_gather(int ranks) {
  check_rank_count(ranks);
  return Schedule(ServerPull{ranks, ranks});
}

Schedule bruck_reduce_scatter(int ranks) {
  check_rank_count(ranks);
  return Schedule(BruckScatter{ranks});
}

Schedule bruck_all_gather(int ranks) {
  check_rank_count(ranks);
  return Schedule(BruckGather{ranks});
}

Schedule pairwise_all_to_all(int ranks) {
  check_rank_count(ranks);
  return Schedule(PairwiseAllToAll{.ranks = ranks});
}

Schedule direct_all_to_all(int ranks) {
  check_rank_count(ranks);
  return Schedule(PairwiseAllToAll{.ranks = ranks, .at_once = std::max(1, ranks - 1)});
}

Schedule bruck_all_to_all(int ranks) {
  check_rank_count(ranks);
  return Schedule(BruckAllToAll{ranks});
}

Schedule pat_reduce_scatter(int ranks) {
  check_rank_count(ranks);
  return Schedule(PatScatter{ranks});
}

Schedule pat_all_gather(int ranks) {
  check_rank_count(ranks);
  return Schedule(PatGather{ranks});
}

}  // namespace paceline::models

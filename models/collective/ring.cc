// Tests: tests/models/all_reduce_test.cc, tests/agreement.
#include "models/base/error.h"
#include "models/collective/algorithms.h"
#include "models/collective/all_reduce.h"
#include "models/collective/combinators.h"

namespace paceline::models {

Schedule ring_all_reduce(int ranks) {
  check_rank_count(ranks);
  return sequence({Schedule(RingReduceScatter{ranks}), Schedule(RingAllGather{ranks})});
}

}  // namespace paceline::models

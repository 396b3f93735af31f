// What the executor on transports leaves in the buckets: the bits that other executors have to leave.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "runtime/collective/executor.h"
#include "runtime/transport/thread_transport.h"
#include "tests/support/collective_runs.h"

namespace paceline::test {

// Rank 0's bucket after each case. The cases are of as many ranks.
inline std::vector<Bucket> executor_results(const std::vector<Case>& cases) {
  if (cases.empty()) return {};
  const int p = cases.front().schedule.ranks();
  auto transports = runtime::thread_transports(p);
  std::vector<Bucket> buckets(cases.size());
  on_ranks(p, [&](int rank) {
    const auto transport = std::move(transports[static_cast<std::size_t>(rank)]);
    runtime::Executor executor(*transport);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      Bucket bucket = bucket_of(cases[i], rank);
      executor.run(executor.prepare(cases[i].schedule, cases[i].elements, cases[i].type),
                   bucket.data());
      if (rank == 0) buckets[i] = bucket;
    }
  });
  return buckets;
}

}  // namespace paceline::test

// What the executor on transports leaves in the buckets: the bits that other executors have to leave.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "runtime/collective/executor.h"
#include "runtime/transport/thread_transport.h"
#include "tests/support/collective_runs.h"

namespace paceline::test {

// Each rank's bucket after each case, by case and rank. The cases are of as many ranks.
inline std::vector<std::vector<Bucket>> executor_results(const std::vector<Case>& cases) {
  if (cases.empty()) return {};
  const int p = cases.front().schedule.ranks();
  auto transports = runtime::thread_transports(p);
  std::vector<std::vector<Bucket>> buckets(cases.size(), std::vector<Bucket>(to_size(p)));
  on_ranks(p, [&](int rank) {
    const auto transport = std::move(transports[static_cast<std::size_t>(rank)]);
    runtime::Executor executor(*transport);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      Bucket& bucket = buckets[i][to_size(rank)];
      bucket = bucket_of(cases[i], rank);
      executor.run(executor.prepare(cases[i].schedule, cases[i].elements, cases[i].type),
                   bucket.data());
    }
  });
  return buckets;
}

}  // namespace paceline::test

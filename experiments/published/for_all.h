// Work that several threads share.
#pragma once

#include <vector>

#include "models/base/parallel.h"

namespace paceline::experiments {

// Calls `call` once for each job, on this many threads, this one among them. What a call throws ends
// its thread's work, and is thrown again at the end.
template <class Job>
void for_all(std::vector<Job>& jobs, int threads, void (*call)(const Job&)) {
  for_each_index(jobs.size(), threads, [&](std::size_t i) { call(jobs[i]); });
}

}  // namespace paceline::experiments
